#include "launcher/cluster/world_link.h"

#include <boost/asio/io_context.hpp>

#include <optional>
#include <utility>

#include "launcher/cluster/join.h"
#include "launcher/host/job_signals.h"
#include "launcher/model/signal_map.h"

namespace fleetrun::launcher {

namespace asio = boost::asio;

struct WorldLink::Loop {
  asio::io_context context{1};
  std::optional<JobSignals> signals;  // while it waits for the first world
  SignalMap map;
};

WorldLink::WorldLink(const JobConfig& config, const Environ& environment, NodeSelf self, bool hangup_ignored,
                     Tell tell, Notify notify)
    : config_(config),
      environment_(environment),
      self_(std::move(self)),
      hangup_ignored_(hangup_ignored),
      tell_(std::move(tell)),
      notify_(std::move(notify)),
      loop_(std::make_unique<Loop>()) {
  loop_->map = signal_map_of(config_.signal_map);
  loop_->signals.emplace(loop_->context, signals_of(loop_->map, hangup_ignored_),
                         [this](int number) { on_signal(number); });
}

WorldLink::~WorldLink() = default;

asio::io_context& WorldLink::loop() {
  return loop_->context;
}

Meet WorldLink::meet() {
  membership_ = join_job(loop_->context, config_, environment_, self_, *this);
  while (!met_ && loop_->context.run_one() > 0) {
  }
  if (met_ && std::holds_alternative<Met>(*met_)) loop_->signals->hand_over();
  loop_->signals.reset();
  loop_->context.restart();
  if (!met_) met_ = JobEnd{125, "there was nobody left to wait for", {}, {}};
  return *met_;
}

/// There are no processes yet to which a signal could be forwarded.
void WorldLink::on_signal(int number) {
  const SignalAction action = rule_for(loop_->map, number, hangup_ignored_).action;
  if (met_ || action == SignalAction::ignore || action == SignalAction::forward) return;
  const bool drain = action == SignalAction::drain;
  met_ = Interrupted{number, drain};
  if (membership_) membership_->stop(drain ? kDrained : number);
  loop_->context.stop();
}

void WorldLink::attach(PodInWorld* pod) {
  pod_ = pod;
}

void WorldLink::ready(const PodOffer& offer) {
  self_.offer = offer;
  if (membership_) membership_->ready(prepared_, offer);
}

void WorldLink::running() {
  if (membership_) membership_->running(generation_);
}

void WorldLink::failing(const std::string& process) {
  if (membership_) membership_->failing(generation_, process);
}

void WorldLink::failed(const NodeFailure& failure) {
  if (membership_) membership_->failed(generation_, failure);
}

void WorldLink::done() {
  if (membership_) membership_->done(generation_);
}

void WorldLink::stop(int signal) {
  if (membership_) membership_->stop(signal);
}

void WorldLink::timed_out() {
  if (membership_) membership_->timed_out();
}

void WorldLink::lapsed() {
  if (membership_) membership_->lapsed();
}

void WorldLink::close() {
  pod_ = nullptr;
  if (!membership_) return;
  bool closed = false;
  loop_->context.restart();
  membership_->close([&closed] { closed = true; });
  while (!closed && loop_->context.run_one() > 0) {
  }
  membership_.reset();
}

void WorldLink::on_news(NewsLevel level, const std::string& text) {
  if (pod_)
    pod_->news(level, text);
  else
    tell_(level, text);
}

/// Before the first world nothing runs, so this host is ready at once.
void WorldLink::on_prepare(std::uint64_t generation, const std::string& why) {
  prepared_ = generation;
  if (pod_)
    pod_->world_ends(why, false);
  else
    membership_->ready(generation, self_.offer);
}

void WorldLink::on_world(const World& world, std::size_t node_rank) {
  generation_ = world.generation;
  if (pod_) return pod_->world_begins(world, node_rank);
  met_ = Met{world, node_rank};
}

void WorldLink::on_update(const World& world, std::size_t node_rank) {
  generation_ = world.generation;
  if (pod_)
    pod_->world_updated(world, node_rank);
  else if (met_)
    met_ = Met{world, node_rank};
}

void WorldLink::on_lease(const PodLease& lease) {
  lease_ = lease;
  if (pod_) pod_->lease_renewed(lease);
}

void WorldLink::on_fenced(const std::string& why) {
  if (pod_)
    pod_->world_ends(why, true);
  else
    tell_(NewsLevel::warning, why);
}

void WorldLink::on_job_over(const JobEnd& end) {
  if (pod_) return pod_->job_decided(end);
  met_ = end;
}

}  // namespace fleetrun::launcher
