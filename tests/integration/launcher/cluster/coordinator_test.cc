// The coordinator of a controller, and agents that join it; all of them in one loop.
#include "launcher/cluster/coordinator.h"

#include <signal.h>

#include <deque>

#include "launcher/cluster/join.h"
#include "launcher/model/job_config.h"
#include "launcher/model/membership.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/version.h"
#include "tests/support/cluster_loop.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::tests;
using namespace std::chrono_literals;

namespace {

const std::string kSecret = "0123456789abcdefghijklmnopqrstuv";

struct Observer final : CoordinatorObserver {
  std::vector<std::string> events, warnings;
  std::optional<JobEnd> over;
  void on_event(const ClusterEvent& event) override { events.push_back(to_string(event)); }
  void on_warning(const std::string& text, const std::string&) override { warnings.push_back(text); }
  void on_over(const JobEnd& end) override { over = end; }
};

struct Agent final : MembershipListener {
  std::unique_ptr<Membership> membership;
  NodeSelf self;
  std::optional<World> world;
  std::optional<JobEnd> end;
  bool closed = false;

  Agent(boost::asio::io_context& loop, const Endpoint& coordinator, int number) {
    self.node = std::string(31, '0') + std::to_string(number);
    self.name = "h" + std::to_string(number);
    self.pod = "podxxx";
    self.offer = {"127.0.0." + std::to_string(number), {7000}, {}, 9000};
    JobConfig config;
    config.job_id = "job";
    config.host = self.offer.host;
    config.host_chosen = true;
    config.rendezvous.kind = Rendezvous::Kind::master;
    config.rendezvous.master = coordinator;
    config.rendezvous.may_coordinate = false;
    config.rendezvous.secret = kSecret;
    config.rendezvous.nodes = {2, 2, 1};
    config.rendezvous.join_timeout = 20s;
    membership = join_job(loop, config, {}, self, *this);
  }
  void on_news(NewsLevel, const std::string&) override {}
  void on_prepare(std::uint64_t generation, const std::string&) override {
    membership->ready(generation, self.offer);
  }
  void on_world(const World& its, std::size_t) override {
    world = its;
    membership->running(its.generation);
  }
  void on_update(const World& its, std::size_t) override { world = its; }
  void on_lease(const PodLease&) override {}
  void on_fenced(const std::string&) override {}
  void on_job_over(const JobEnd& its) override {
    end = its;
    membership->close([this] { closed = true; });
  }
};

struct Controller {
  boost::asio::io_context loop{1};
  Observer observer;
  std::unique_ptr<Coordinator> coordinator;
  std::deque<Agent> agents;

  explicit Controller(std::vector<Endpoint> listen = {{"127.0.0.1", 0}}) {
    CoordinatorSettings settings;
    settings.job_id = "job";
    settings.version = FLEETRUN_VERSION;
    settings.nodes = {2, 2, 1};
    settings.expected = {"h1", "h2"};
    CoordinatorPlace place;
    place.listen = std::move(listen);
    place.channel.secret = Secret::from_bytes(kSecret);
    place.channel.version = "1.2.3";
    coordinator = start_coordinator(loop, settings, place, observer);
  }
  template <class Done>
  void until(Done done) {
    turn_until(loop, done);
  }
};

}  // namespace

TEST_CASE("agents join the coordinator of their head, and everybody hears how the job ends") {
  Controller controller({{"127.0.0.1", 0}, {"127.0.0.2", 0}});
  REQUIRE(controller.coordinator->endpoints().size() == 2);
  CHECK(controller.coordinator->missing() == std::vector<std::string>{"h1", "h2"});
  controller.agents.emplace_back(controller.loop, controller.coordinator->endpoints()[0], 1);
  controller.agents.emplace_back(controller.loop, controller.coordinator->endpoints()[1], 2);
  controller.until([&] { return controller.agents[0].world && controller.agents[1].world; });
  REQUIRE(controller.coordinator->world());
  CHECK(controller.coordinator->world()->hash() == controller.agents[0].world->hash());
  for (Agent& agent : controller.agents) agent.membership->done(agent.world->generation);
  controller.until(
      [&] { return controller.observer.over && controller.agents[0].closed && controller.agents[1].closed; });
  CHECK(controller.observer.over->exit_status == 0);
  CHECK(controller.agents[0].end->exit_status == 0);
  CHECK(controller.observer.warnings.empty());
}

TEST_CASE("a stop at the head ends the job everywhere") {
  Controller controller;
  for (int i = 1; i <= 2; ++i)
    controller.agents.emplace_back(controller.loop, controller.coordinator->endpoints()[0], i);
  controller.until([&] { return controller.agents[0].world && controller.agents[1].world; });
  controller.coordinator->stop(SIGTERM);
  controller.until(
      [&] { return controller.observer.over && controller.agents[0].end && controller.agents[1].end; });
  CHECK(controller.agents[0].end->exit_status == 143);
}

TEST_CASE("strangers and other secrets at the head's port are told of") {
  Controller controller;
  Stranger web(controller.coordinator->endpoints()[0]);
  web.say("GET / HTTP/1.1\r\n\r\n");
  controller.until([&] { return !controller.observer.warnings.empty(); });
  CHECK(controller.observer.warnings[0].find("turned a stranger away: 127.0.0.1:") == 0);
  Caller other;
  other.channel = dial(controller.loop, controller.coordinator->endpoints()[0],
                       channel_settings("another secret of just 32 bytes!"), other);
  controller.until([&] { return other.closed && controller.observer.warnings.size() > 1; });
  CHECK(controller.observer.warnings[1].find("has another secret than this host") != std::string::npos);
}

TEST_CASE("who has the secret and speaks nonsense is cut off, and told of") {
  Controller controller;
  Caller broken;
  broken.channel = dial(controller.loop, controller.coordinator->endpoints()[0], channel_settings(), broken);
  controller.until([&] { return broken.open; });
  broken.channel->send("\xff nonsense");
  controller.until([&] { return broken.closed && !controller.observer.warnings.empty(); });
  CHECK(controller.observer.warnings[0].find("a message of a launcher cannot be read") == 0);
}

TEST_CASE("an address that cannot be listened at is refused in words") {
  const auto refusal = [](const Endpoint& endpoint) {
    try {
      Controller controller({endpoint});
    } catch (const Error& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    return std::string();
  };
  const UniqueFd taken = listen_at("127.0.0.1");
  const Endpoint busy = to_endpoint(local_address(taken.value()).value());
  CHECK(refusal(busy) == "cannot listen at " + to_string(busy) +
                             ": another program does | choose another port, or end that program");
  CHECK(refusal({"192.0.2.1", 0}) ==
        "cannot listen at 192.0.2.1:0: it is not an address of this host | check it with: ip address");
  CHECK(refusal({"h1", 0}) == "h1 is not an address in digits | give one of this host's addresses");
}
