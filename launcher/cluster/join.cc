// What a supervisor holds of its node.
#include "launcher/cluster/join.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "launcher/cluster/job_secret.h"
#include "launcher/cluster/node.h"
#include "runtime/base/error.h"
#include "runtime/base/version.h"

namespace fleetrun::launcher {
namespace {

/// When a process of this host died, in the time of the state machines.
Instant died_at(const NodeFailure& failure) {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto monotonic = std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  const auto ago =
      std::max(monotonic - std::chrono::nanoseconds(failure.at), std::chrono::nanoseconds::zero());
  return cluster_now() - std::chrono::duration_cast<Instant>(ago);
}

/// What is handed out.
class NodeMembership final : public Membership {
 public:
  explicit NodeMembership(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  ~NodeMembership() override { node_->let_go(); }
  NodeMembership(const NodeMembership&) = delete;
  NodeMembership& operator=(const NodeMembership&) = delete;

  void ready(std::uint64_t generation, const PodOffer& offer) override {
    node_->report([&](MemberCore& member) { return member.ready(generation, offer, cluster_now()); });
  }
  void running(std::uint64_t generation) override {
    node_->report([&](MemberCore& member) { return member.running(generation, cluster_now()); });
  }
  void failing(std::uint64_t generation, const std::string& process) override {
    node_->report([&](MemberCore& member) { return member.failing(generation, process, cluster_now()); });
  }
  void failed(std::uint64_t generation, const NodeFailure& failure) override {
    node_->report([&](MemberCore& member) {
      return member.failed(generation, failure, died_at(failure), cluster_now());
    });
  }
  void done(std::uint64_t generation) override {
    node_->report([&](MemberCore& member) { return member.done(generation, cluster_now()); });
  }
  void stop(int signal) override {
    node_->report([&](MemberCore& member) { return member.stop(signal, cluster_now()); });
  }
  void timed_out() override {
    node_->report([&](MemberCore& member) { return member.timed_out(cluster_now()); });
  }
  void lapsed() override {
    node_->report([](MemberCore& member) { return member.lapsed(cluster_now()); });
  }
  void close(std::function<void()> closed) override { node_->close(std::move(closed)); }

 private:
  std::shared_ptr<Node> node_;
};

}  // namespace

std::unique_ptr<Membership> join_job(boost::asio::io_context& loop, const JobConfig& config,
                                     const Environ& environment, const NodeSelf& self,
                                     MembershipListener& listener) {
  ChannelSettings channel;
  if (!config.rendezvous.insecure)
    channel.secret = rendezvous_secret(config, environment, channel.secret_source);
  channel.version = FLEETRUN_VERSION;
  hmac_sha256("", "");  // should libcrypto be missing, it is said here, not in the middle of a handshake
  auto node = std::make_shared<Node>(loop, config, self, std::move(channel), listener);
  node->start();
  if (config.rendezvous.insecure)
    node->warn(
        "--insecure: authentication is disabled; anybody who reaches the job's port can join it and run "
        "programs as this "
        "user",
        "leave --insecure out");
  return std::make_unique<NodeMembership>(node);
}

}  // namespace fleetrun::launcher
