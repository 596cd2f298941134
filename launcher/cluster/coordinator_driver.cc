#include "launcher/cluster/coordinator_driver.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <list>
#include <utility>

#include "launcher/cluster/deadline_timer.h"

namespace fleetrun::launcher {

namespace asio = boost::asio;

namespace {

/// A connection that says one thing.
struct Teller final : ChannelListener {
  explicit Teller(SharedMessage its_message) : message(std::move(its_message)) {}

  void on_open() override {
    channel->send(message.bytes());
    channel->close();
    done = true;
  }
  void on_message(std::string_view) override {}
  void on_closed(const ChannelClosed&) override { done = true; }

  SharedMessage message;
  std::unique_ptr<Channel> channel;
  bool done = false;
};

class Driver final : public CoordinatorDriver {
 public:
  Driver(asio::io_context& loop, const CoordinatorSettings& settings, std::optional<Journal> journal,
         const ChannelSettings& channel, CoordinatorHooks hooks)
      : loop_(loop),
        channel_(channel),
        hooks_(std::move(hooks)),
        core_(settings, std::move(journal), cluster_now()),
        timer_(loop, [this] { perform(core_.on_tick(cluster_now())); }) {
    timer_.set(core_.next_deadline());
  }

  void on_message(ConnectionId connection, const Message& message) override {
    perform(core_.on(connection, message, cluster_now()));
  }
  void on_closed(ConnectionId connection, Closing how) override {
    perform(core_.on_closed(connection, how, cluster_now()));
  }
  void leads_until(Instant when) override { core_.leads_until(when); }
  void on_published(bool stored) override { perform(core_.on_published(stored, cluster_now())); }
  void stop(int signal) override { perform(core_.stop(signal, cluster_now())); }
  void end(const JobEnd& end) override { perform(core_.end(end, cluster_now())); }
  void depose(const std::string& why) override { perform(core_.depose(why, cluster_now())); }
  const CoordinatorCore& core() const noexcept override { return core_; }

 private:
  void perform(coordinating::Outputs outputs) {
    // Its own node hears of it before what is said to everybody:
    // that would send it to look for this coordinator again.
    for (const auto& output : outputs) {
      if (const auto* step_down = std::get_if<coordinating::StepDown>(&output)) announce(*step_down);
    }
    for (auto& output : outputs) std::visit([this](auto& one) { act(one); }, output);
    if (!finished_) timer_.set(core_.next_deadline());
  }

  void act(coordinating::SendTo& send) { hooks_.send(send.to, send.message); }
  void act(coordinating::CloseConnection& close) { hooks_.close(close.connection); }
  void act(coordinating::Publish& publish) { hooks_.publish(publish.journal); }
  void act(coordinating::Note& note) { hooks_.event(note.event); }
  void act(coordinating::TellOnce& tell) {
    tellers_.remove_if([](const Teller& teller) { return teller.done; });
    Teller& teller = tellers_.emplace_back(tell.message);
    teller.channel = dial(loop_, tell.to, channel_, teller);
  }
  void act(coordinating::StepDown&) {}  // announced already
  void announce(const coordinating::StepDown& step_down) {
    finish([why = step_down.why](CoordinatorHooks& hooks) { hooks.stepped_down(why); });
  }
  void act(coordinating::Over& over) {
    finish([end = over.end](CoordinatorHooks& hooks) { hooks.over(end); });
  }

  template <class Tell>
  void finish(Tell tell) {
    if (std::exchange(finished_, true)) return;
    asio::post(loop_, [alive = std::weak_ptr<int>(alive_), this, tell] {
      if (!alive.lock()) return;
      CoordinatorHooks hooks = hooks_;  // whoever is told may let go of us
      tell(hooks);
    });
  }

  asio::io_context& loop_;
  ChannelSettings channel_;
  CoordinatorHooks hooks_;
  CoordinatorCore core_;
  DeadlineTimer timer_;
  std::list<Teller> tellers_;
  bool finished_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // as long as this: by whom the last turn knows
};

}  // namespace

std::unique_ptr<CoordinatorDriver> drive(asio::io_context& loop, const CoordinatorSettings& settings,
                                         std::optional<Journal> journal, const ChannelSettings& channel,
                                         CoordinatorHooks hooks) {
  return std::make_unique<Driver>(loop, settings, std::move(journal), channel, std::move(hooks));
}

}  // namespace fleetrun::launcher
