#include "launcher/cluster/member_core.h"

#include <doctest/doctest.h>

#include <optional>

using namespace fleetrun;
using namespace fleetrun::launcher;
using joining::Dial;
using joining::HangUp;
using joining::Outputs;
using joining::Send;
using joining::TellFenced;
using joining::TellJobOver;
using joining::TellPrepare;
using joining::TellWorld;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const std::string kRun(32, 'f');

MemberSettings node(int number, bool takeover = false) {
  MemberSettings settings;
  settings.job_id = "job";
  settings.version = "1.0";
  settings.node = std::string(31, '0') + std::to_string(number);
  settings.name = "h" + std::to_string(number);
  settings.successor = {settings.name, 9'100};
  settings.offer = {settings.name, {1}, {}, 0};
  settings.coordinator = Endpoint{"h0", 9'000};
  settings.takeover = takeover;
  settings.join_timeout = seconds(20);
  settings.elastic_timeout = seconds(30);
  return settings;
}

Member member(int number) {
  const MemberSettings settings = node(number);
  Member its;
  its.node = settings.node;
  its.name = settings.name;
  its.successor = settings.successor;
  its.offer = settings.offer;
  its.first_trainer = number - 1;
  return its;
}

struct Host {
  explicit Host(MemberSettings settings) : core(std::move(settings)) { take(core.start(now)); }
  void take(Outputs its) {
    for (auto& output : its) outputs.push_back(std::move(output));
  }
  template <class Kind>
  std::optional<Kind> newest() const {
    for (auto its = outputs.rbegin(); its != outputs.rend(); ++its) {
      if (const auto* found = std::get_if<Kind>(&*its)) return *found;
    }
    return std::nullopt;
  }
  template <class Kind>
  std::optional<Kind> said() const {
    for (auto its = outputs.rbegin(); its != outputs.rend(); ++its) {
      const auto* send = std::get_if<Send>(&*its);
      if (!send) continue;
      if (const auto* found = std::get_if<Kind>(&send->message.message())) return *found;
    }
    return std::nullopt;
  }
  std::uint64_t uplink() const { return newest<Dial>()->uplink; }
  void connect() { take(core.on_connected(uplink(), now)); }
  void hear(const Message& message) { take(core.on(uplink(), message, now)); }
  void welcome(bool resumed = false) {
    Welcome its;
    its.run = kRun;
    its.resumed = resumed;
    hear(its);
  }
  void pass(milliseconds time) {
    for (milliseconds passed{}; passed < time; passed += milliseconds(100)) {
      now += milliseconds(100);
      take(core.on_tick(now));
    }
  }
  /// A world of h1 … hN.
  void world(std::uint64_t generation, int nodes, int own) {
    auto its = std::make_shared<World>();
    its->generation = generation;
    its->attempt = static_cast<int>(generation) - 1;
    its->run = kRun;
    for (int i = 1; i <= nodes; ++i) {
      its->members.push_back(member(i));
    }
    WorldNews news;
    news.generation = generation;
    news.attempt = its->attempt;
    news.run = kRun;
    news.rank = own - 1;
    news.nodes = nodes;
    news.hash = its->hash();
    hear(news);
    hear(WorldList{its, node(1).node, {}});
  }
  void join(int nodes, int own) {
    connect();
    welcome();
    world(1, nodes, own);
  }

  Instant now = seconds(100);
  MemberCore core;
  std::vector<joining::Output> outputs;
};

}  // namespace

TEST_CASE("a node dials, says who it is, and runs the first world that it is told, once it has its list") {
  Host host(node(2));
  CHECK(host.newest<Dial>()->to == Endpoint{"h0", 9'000});
  host.connect();
  CHECK(host.said<Hello>()->name == "h2");
  CHECK(host.said<Hello>()->run.empty());
  host.welcome();
  host.world(1, 2, 2);
  REQUIRE(host.newest<TellWorld>());
  CHECK(host.newest<TellWorld>()->news.rank == 1);
  CHECK(host.newest<TellWorld>()->world->members.size() == 2);
}

TEST_CASE("a node without a coordinator tries again, and gives up with the reason") {
  Host host(node(1));
  for (int i = 0; i < 400 && !host.core.over(); ++i) {
    host.take(host.core.on_dial_failed(host.uplink(), "connection refused", host.now));
    host.pass(milliseconds(100));
  }
  REQUIRE(host.newest<TellJobOver>());
  CHECK(host.newest<TellJobOver>()->end.exit_status == 125);
  CHECK(host.newest<TellJobOver>()->end.why == "the job did not begin within 20 s: connection refused");
}

TEST_CASE("where nobody answers, the address and the reason are told after 3 s, and every 10 s") {
  Host host(node(1));
  std::vector<std::string> told;
  for (int i = 0; i < 140; ++i) {
    host.take(host.core.on_dial_failed(host.uplink(), "connection refused", host.now));
    host.pass(milliseconds(100));
  }
  for (const joining::Output& output : host.outputs)
    if (const auto* news = std::get_if<joining::TellNews>(&output)) told.push_back(news->text);
  const std::string once = "no host of this job has answered yet: h0:9000: connection refused";
  CHECK(told == std::vector<std::string>{once, once});
}

TEST_CASE("it prepares for each epoch once, and takes no world that it did not prepare for") {
  Host host(node(1));
  host.join(1, 1);
  host.outputs.resize(1);
  host.world(2, 1, 1);
  CHECK_FALSE(host.newest<TellWorld>());
  Prepare prepare;
  prepare.generation = 3;
  host.hear(prepare);
  CHECK(host.newest<TellPrepare>()->generation == 3);
  prepare.generation = 2;
  host.hear(prepare);
  CHECK(host.newest<TellPrepare>()->generation == 3);
  host.take(host.core.ready(3, {"h1", {5}, {}, 0}, host.now));
  CHECK(host.said<Ready>()->offer.trainers.front() == 5);
  host.world(3, 1, 1);
  CHECK(host.newest<TellWorld>()->news.generation == 3);
  host.outputs.resize(1);
  host.world(3, 1, 1);  // told again after the connection broke
  CHECK_FALSE(host.newest<TellWorld>());
}

TEST_CASE("a list that does not fit its news is not followed") {
  Host host(node(1));
  host.connect();
  host.welcome();
  WorldNews news;
  news.generation = 1;
  news.hash = "0000000000000000";
  host.hear(news);
  auto world = std::make_shared<World>();
  world->generation = 1;
  world->members.push_back(member(1));
  host.hear(WorldList{world, "", {}});
  CHECK_FALSE(host.newest<TellWorld>());
}

TEST_CASE("silence for a lease fences the node, and so does its own sleep") {
  Host host(node(1));
  host.join(1, 1);
  SUBCASE("silence") {
    host.pass(milliseconds(2'700));
    CHECK_FALSE(host.newest<TellFenced>());
    host.pass(milliseconds(100));
    CHECK(host.newest<TellFenced>()->why == "no answer of the coordinator for 2.8 s");
  }
  SUBCASE("sleep") {
    host.now += seconds(5);
    host.hear(Beat{});
    CHECK(host.newest<TellFenced>()->why == "this host slept for 5.0 s");
    host.pass(milliseconds(100));
    host.connect();
    CHECK(host.said<Hello>()->fenced);
  }
  host.take(host.core.failing(1, "trainer 0", host.now));
  CHECK_FALSE(host.said<Failing>());  // nothing runs here any more
}

TEST_CASE("the lease follows what the coordinator is known to have heard, not what is heard of it") {
  MemberSettings settings = node(1);
  settings.lost_after = seconds(60);
  Host host(settings);
  host.join(1, 1);
  const Instant joined = host.now;
  CHECK(host.newest<joining::TellLease>() ==
        joining::TellLease{joined + milliseconds(2'750), joined + milliseconds(59'750)});
  host.pass(milliseconds(500));
  host.hear(Beat{Instant(1), Instant{}, Instant{}});  // it has heard nothing yet
  CHECK(host.newest<joining::TellLease>()->ends == joined + milliseconds(59'750));
  host.hear(Beat{Instant(2), joined + milliseconds(100), Instant{}});
  CHECK(host.newest<joining::TellLease>()->ends == joined + milliseconds(59'850));
  host.take(host.core.lapsed(host.now));
  CHECK(host.newest<TellFenced>()->why == "no answer of the coordinator for 60 s");
  CHECK_FALSE(host.newest<joining::HangUp>()->cut);
}

TEST_CASE("a host that is waited for dials again while its processes stand still") {
  MemberSettings settings = node(1, true);
  settings.lost_after = seconds(60);
  Host host(settings);
  host.join(2, 1);
  host.pass(seconds(40));                      // longer than the elastic timeout
  CHECK(host.newest<joining::HangUp>()->cut);  // a goodbye that came late would end its part
  CHECK_FALSE(host.newest<TellFenced>());
  CHECK_FALSE(host.newest<joining::TellJobOver>());
  host.connect();
  CHECK_FALSE(host.said<Hello>()->fenced);
  host.welcome(true);
  CHECK(host.newest<joining::TellLease>()->stands == host.now + milliseconds(2'750));
}

TEST_CASE("a world that lay unread for a lease is not begun before the coordinator has said it again") {
  MemberSettings settings = node(2, true);
  settings.lost_after = seconds(60);
  Host host(settings);
  host.connect();
  host.welcome();
  host.now += milliseconds(2'750);
  host.world(1, 2, 2);
  CHECK_FALSE(host.newest<TellWorld>());
  CHECK(host.newest<HangUp>()->cut);  // no goodbye: who waits for it goes on waiting
  host.pass(milliseconds(100));
  host.connect();
  CHECK(host.said<Hello>()->world == 0);
  CHECK_FALSE(host.said<Hello>()->fenced);
  host.welcome(true);
  host.world(1, 2, 2);
  REQUIRE(host.newest<TellWorld>());
  CHECK(host.newest<TellWorld>()->news.generation == 1);
}

TEST_CASE("a connection that broke is made again, and what was said is said again") {
  Host host(node(1));
  host.join(1, 1);
  host.take(host.core.running(1, host.now));
  host.take(host.core.done(1, host.now));
  host.outputs.clear();
  host.take(host.core.on_closed(1, Closing::broken, host.now));
  host.pass(milliseconds(100));
  host.connect();
  CHECK(host.said<Hello>()->connection == 2);
  CHECK(host.said<Hello>()->world == 1);
  CHECK_FALSE(host.said<Hello>()->fenced);
  host.welcome(true);
  CHECK(host.said<Done>()->generation == 1);
  CHECK_FALSE(host.newest<TellFenced>());
  host.take(host.core.on(1, Message(End{}), host.now));  // of the old connection
  CHECK_FALSE(host.core.over());
}

TEST_CASE("a node that was lost meanwhile stops what runs") {
  Host host(node(1));
  host.join(1, 1);
  host.take(host.core.on_closed(1, Closing::closed, host.now));
  host.pass(milliseconds(100));
  host.connect();
  host.welcome(false);
  CHECK(host.newest<TellFenced>()->why == "the others go on without this host");
}

TEST_CASE("a lost coordinator: the lowest member coordinates, the others dial it") {
  Host first(node(1, true)), second(node(2, true));
  first.join(3, 1);
  second.join(3, 2);
  first.pass(milliseconds(2'800));
  second.pass(milliseconds(2'800));
  for (Host* host : {&first, &second}) {
    CHECK(host->newest<TellFenced>());
    CHECK(host->newest<Dial>()->to == Endpoint{"h0", 9'000});  // perhaps it is only this node that lost it
    host->take(host->core.on_dial_failed(host->uplink(), "connection refused", host->now));
  }
  REQUIRE(first.newest<joining::Coordinate>());
  CHECK(first.newest<joining::Coordinate>()->journal.world->generation == 1);
  CHECK(first.newest<Dial>()->here);
  CHECK_FALSE(second.newest<joining::Coordinate>());
  CHECK(second.newest<Dial>()->to == Endpoint{"h1", 9'100});
}

TEST_CASE("a coordinator that hands over: who is sent back to it by the heir asks the heir again") {
  Host host(node(3, true));
  host.join(3, 3);
  Redirect redirect;
  redirect.coordinator = {"h2", 9'100};
  redirect.heirs = {1, 0, node(2).node, {node(2).node, node(3).node}};
  host.hear(redirect);
  CHECK(host.newest<Dial>()->to == Endpoint{"h2", 9'100});
  host.connect();
  host.hear(Redirect{{"h0", 9'000}, "it coordinates the job", {}});  // it has not heard yet
  host.pass(milliseconds(300));
  CHECK(host.uplink() == 3);
  CHECK(host.newest<Dial>()->to == Endpoint{"h2", 9'100});
  host.connect();
  host.welcome();
  host.hear(Redirect{{"h0", 9'000}, "another host coordinates the job", {}});  // which has come back
  CHECK(host.newest<Dial>()->to == Endpoint{"h0", 9'000});
}

TEST_CASE("a lost coordinator: all others are asked in turn, and only then it is this node's turn") {
  Host host(node(2, true));
  host.join(4, 2);
  host.pass(milliseconds(2'800));
  std::string asked;
  for (int i = 0; i < 40 && !host.newest<joining::Coordinate>(); ++i) {
    const Endpoint to = host.newest<Dial>()->to;
    asked += to.host + " ";
    if (to.host == "h0") {
      host.take(host.core.on_dial_failed(host.uplink(), "connection refused", host.now));
      continue;
    }
    host.connect();
    host.hear(NotYet{});
    for (const std::uint64_t last = host.uplink(); host.uplink() == last;) host.pass(milliseconds(100));
  }
  REQUIRE(host.newest<joining::Coordinate>());
  CHECK(asked == "h0 h1 h3 h4 h0 h1 h3 h4 h0 h1 ");
}

TEST_CASE("a newcomer that was sent to a coordinator which is gone asks at the first address again") {
  Host host(node(2, true));
  host.connect();
  Redirect redirect;
  redirect.coordinator = {"h5", 7};
  host.hear(redirect);
  CHECK(host.newest<Dial>()->to == Endpoint{"h5", 7});
  for (int i = 0; i < 4 && host.newest<Dial>()->to == Endpoint{"h5", 7}; ++i) {
    host.take(host.core.on_dial_failed(host.uplink(), "no route to host", host.now));
    host.pass(milliseconds(300));
  }
  CHECK(host.newest<Dial>()->to == Endpoint{"h0", 9'000});
}

TEST_CASE("a node that was fenced while it said hello says so in another one") {
  Host host(node(1));
  host.join(1, 1);
  host.pass(milliseconds(2'500));
  host.take(host.core.on_closed(host.uplink(), Closing::broken, host.now));
  host.pass(milliseconds(100));
  host.connect();
  CHECK_FALSE(host.said<Hello>()->fenced);
  host.pass(milliseconds(300));
  REQUIRE(host.newest<TellFenced>());
  host.welcome(true);
  host.pass(milliseconds(100));
  host.connect();
  CHECK(host.said<Hello>()->fenced);
  CHECK(host.said<Hello>()->connection == 3);
}

TEST_CASE("who asks a member is told where the coordinator is, or that it is not known yet") {
  Host host(node(1, true));
  Hello hello;
  hello.job_id = "job";
  host.take(host.core.on_stranger(5, hello, host.now));
  CHECK(std::holds_alternative<NotYet>(host.newest<joining::Answer>()->message.message()));
  host.join(2, 1);
  host.take(host.core.on_stranger(6, hello, host.now));
  const auto answer = host.newest<joining::Answer>();
  CHECK(answer->stranger == 6);
  CHECK(std::get<Redirect>(answer->message.message()).coordinator == Endpoint{"h0", 9'000});
}

TEST_CASE("in place the node goes on, and says ready by itself") {
  Host host(node(1));
  host.join(1, 1);
  Prepare prepare;
  prepare.generation = 2;
  prepare.in_place = true;
  host.hear(prepare);
  CHECK_FALSE(host.newest<TellPrepare>());
  CHECK(host.said<Ready>()->generation == 2);
  WorldNews news;
  auto world = std::make_shared<World>();
  world->generation = news.generation = 2;
  world->run = news.run = kRun;
  world->members.push_back(member(1));
  news.hash = world->hash();
  host.hear(news);
  host.hear(WorldList{world, "", {}});
  CHECK(host.newest<TellWorld>()->news.update);
}

TEST_CASE("a refusal and an end are told once, and the coordinator hears that the end is known") {
  Host refused(node(1));
  refused.connect();
  refused.hear(Refused{"node rank 0 is taken twice", "give each host its own", 125});
  CHECK(refused.newest<TellJobOver>()->end.why ==
        "node rank 0 is taken twice\n  hint: give each host its own");
  CHECK(refused.core.over());
  Host host(node(1));
  host.join(1, 1);
  host.hear(End{{143, "stopped by SIGINT on h2", "h2", {}}, false});
  CHECK(host.said<KnowsEnd>());
  CHECK(host.newest<TellJobOver>()->end.exit_status == 143);
  CHECK(host.core.next_deadline() == Instant::max());
  host.take(host.core.leave("", host.now));
  CHECK(host.newest<HangUp>());
}

TEST_CASE("a host that gave way to a coordinator which is gone begins the job itself") {
  MemberSettings settings = node(1, true);
  settings.coordinates = true;
  settings.join_timeout = seconds(60);
  Host host(settings);
  host.connect();
  host.welcome();
  host.take(host.core.on_stepped_down("another host coordinates the job", host.now));
  Acting acting{"job", std::string(32, 'e'), 4, {"h2", 9'100}};
  host.take(host.core.on_stranger(7, acting, host.now));
  CHECK(host.newest<Dial>()->to == Endpoint{"h2", 9'100});
  const auto fail_for = [&host](milliseconds time) {
    const Instant until = host.now + time;
    for (; host.now < until && !host.newest<joining::Coordinate>(); host.pass(milliseconds(200)))
      host.take(host.core.on_dial_failed(host.uplink(), "connection refused", host.now));
  };
  fail_for(seconds(8));
  host.take(host.core.on_stranger(8, acting, host.now));  // it leads still
  fail_for(milliseconds(11'800));
  CHECK_FALSE(host.newest<joining::Coordinate>());
  fail_for(milliseconds(600));
  REQUIRE(host.newest<joining::Coordinate>());
  CHECK(host.newest<joining::Coordinate>()->journal.run.empty());
  CHECK(host.newest<Dial>()->here);
  host.connect();
  host.welcome();
  host.world(1, 1, 1);
  CHECK(host.newest<TellWorld>());
}

TEST_CASE("a long wait for others is a warning once, which torchrun's logs show too") {
  Host host(node(2));
  host.connect();
  host.welcome();
  std::string levels;
  for (int i = 0; i < 5; ++i) {
    host.hear(Waiting{"waiting for 1 of 2 hosts; here: h2"});
    levels += host.newest<joining::TellNews>()->level == NewsLevel::warning ? 'w' : 'i';
  }
  CHECK(levels == "iiwii");
}

TEST_CASE("a spare that finds no coordinator says how long it looked") {
  Host host(node(2));
  host.connect();
  host.welcome();
  host.hear(Parked{"the job has all its 1 host"});
  host.take(host.core.on_closed(host.uplink(), Closing::closed, host.now));
  for (int i = 0; i < 200 && !host.core.over(); ++i) {
    host.take(host.core.on_dial_failed(host.uplink(), "connection refused", host.now));
    host.pass(milliseconds(200));
  }
  CHECK(host.newest<TellJobOver>()->end.exit_status == 75);
  CHECK(host.newest<TellJobOver>()->end.why ==
        "no coordinator of the job was found for 30 s: connection refused");
}

TEST_CASE("a host that is left alone says how many would have been enough") {
  Host host(node(2, true));
  host.join(3, 2);
  host.take(host.core.on_closed(host.uplink(), Closing::closed, host.now));
  for (int i = 0; i < 200 && !host.core.over(); ++i) {
    host.take(host.core.on_dial_failed(host.uplink(), "connection refused", host.now));
    host.pass(milliseconds(200));
  }
  REQUIRE(host.newest<TellJobOver>());
  CHECK(host.newest<TellJobOver>()->end.exit_status == 75);
  CHECK(host.newest<TellJobOver>()->end.why ==
        "no coordinator of the job was found for 30 s: connection refused (of 3 hosts more than half have to "
        "be left to replace it; with etcd fewer may be)");
}

TEST_CASE("a Discovery says where to go, and again when that changes") {
  MemberSettings settings = node(1);
  settings.coordinator.reset();
  Host host(settings);
  CHECK_FALSE(host.newest<Dial>());
  host.take(host.core.follow(Endpoint{"h5", 1}, host.now));
  CHECK(host.newest<Dial>()->to == Endpoint{"h5", 1});
  host.take(host.core.follow(std::nullopt, host.now));
  CHECK(host.newest<Dial>()->here);
}

TEST_CASE("a host that its user stopped has a lease until it has gone, and follows nobody else") {
  Host host(node(2, true));
  host.join(2, 2);
  host.take(host.core.stop(15, host.now));
  host.hear(End{{143, "stopped by SIGTERM on h2", "h2", {}}, true});
  CHECK(host.newest<TellJobOver>()->end.exit_status == 143);
  CHECK(host.core.over());
  CHECK(host.core.left());
  host.pass(seconds(1));
  host.hear(Beat{host.now, host.now, {}});
  CHECK(host.newest<joining::TellLease>()->ends == host.now + seconds(3) - kLeaseMargin);
  CHECK(host.said<Beat>()->echo == host.now);
  SUBCASE("what runs is to end for the others, or has begun") {
    host.hear(Prepare{2, "h1 came", false, {}, {}});
    host.world(2, 2, 2);
    CHECK_FALSE(host.newest<TellPrepare>());
    CHECK(host.newest<TellWorld>()->news.generation == 1);
  }
  SUBCASE("its connection breaks: it says so again where it was, and nowhere else") {
    host.take(host.core.on_closed(host.uplink(), Closing::broken, host.now));
    host.pass(milliseconds(300));
    host.connect();
    host.welcome(true);
    host.hear(End{{143, "stopped by SIGTERM on h2", "h2", {}}, true});
    CHECK(host.said<KnowsEnd>());
    CHECK_FALSE(host.newest<TellFenced>());
  }
  SUBCASE("the job is over: what ends here has all its grace, and nobody is asked any more") {
    host.hear(End{{143, "stopped by SIGTERM on h1", "h1", {}}, false});
    CHECK(host.newest<joining::TellLease>() == joining::TellLease{});
    CHECK(host.newest<TellJobOver>()->end.why == "stopped by SIGTERM on h2");
    const std::uint64_t uplink = host.uplink();
    host.take(host.core.on_closed(uplink, Closing::closed, host.now));
    host.pass(seconds(4));
    CHECK(host.uplink() == uplink);
    CHECK_FALSE(host.newest<TellFenced>());
  }
  SUBCASE("the coordinator is lost: what runs here ends with its lease") {
    host.pass(seconds(3));
    CHECK(host.newest<TellFenced>());
    CHECK_FALSE(host.newest<joining::Coordinate>());
  }
  host.take(host.core.leave("its launcher ends", host.now));
  CHECK(host.newest<HangUp>());
}

TEST_CASE("a host to which its leaving coordinator sends the others coordinates at once") {
  Host host(node(2, true));
  host.join(2, 2);
  const Configuration heirs{2, 0, node(2).node, {node(2).node}};
  host.hear(Prepare{2, "h1 leaves", false, heirs, {1, 0, node(1).node, {node(1).node, node(2).node}}});
  host.take(host.core.ready(2, node(2).offer, host.now));
  host.hear(Redirect{{"h2", 9'100}, "the host that coordinated the job leaves it", heirs});
  host.pass(milliseconds(100));
  const auto order = host.newest<joining::Coordinate>();
  REQUIRE(order);
  CHECK(order->journal.formed == heirs);
  CHECK(host.newest<Dial>()->here);
  CHECK_FALSE(host.newest<TellFenced>());
}
