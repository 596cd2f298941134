#include "ps/sync/barrier_service.h"

#include <array>
#include <thread>

#include <doctest/doctest.h>

#include "tests/support/barrier_answer.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using namespace fleetrun::tests;
using fleetrun::Error;
using fleetrun::ErrorKind;

namespace {

struct Two {
  int done = 0;
  std::vector<std::size_t> steps;
  std::string failure;
  BarrierService barrier_service{"server 0",
                                 2,
                                 {[this](const std::vector<Contribution>& step) {
                                    steps.push_back(step.size());
                                    if (!failure.empty()) throw Error(ErrorKind::data, failure);
                                  },
                                  [this] { ++done; }}};

  Two() {
    barrier_service.hello(0, 10);
    barrier_service.hello(1, 11);
  }
  void push(std::uint32_t trainer, Answer& answer) {
    barrier_service.push({{trainer, 0}, std::make_unique<wire::PushRequest>(), answer.respond()});
  }
  void begin() {
    Answer ignored;
    for (const std::uint32_t t : {0u, 1u})
      barrier_service.gather(BarrierService::Kind::begin_epoch, t, {1.0}, ignored.respond());
  }
};

}  // namespace

TEST_CASE("the last to arrive answers all") {
  Two two;
  Answer a;
  Answer b;
  two.barrier_service.gather(BarrierService::Kind::barrier, 0, {}, a.respond());
  CHECK(a.text == "nothing");
  two.barrier_service.gather(BarrierService::Kind::barrier, 1, {}, b.respond());
  CHECK(a.text == "ok");
  CHECK(b.text == "ok");
}

TEST_CASE("a goodbye completes what others wait for, and the last one is told") {
  Two two;
  Answer attended;
  Answer waiting;
  two.begin();
  two.barrier_service.attend(1, attended.respond());
  two.push(0, waiting);
  CHECK(waiting.text == "nothing");
  two.barrier_service.goodbye(1);
  CHECK(waiting.text == "ok");
  CHECK(attended.text == "ok");
  CHECK(two.steps == std::vector<std::size_t>{1});
  CHECK(two.done == 0);
  two.barrier_service.goodbye(0);
  CHECK(two.done == 1);
}

TEST_CASE("a lost trainer fails those who wait and those who would have to") {
  Two two;
  two.begin();
  Answer push;
  Answer barrier;
  Answer attended;
  const std::string gone = "trainer 1 is gone: its connection to server 0 ended without a goodbye";
  two.barrier_service.attend(1, attended.respond());
  two.push(0, push);
  two.barrier_service.lost(1, 99);
  CHECK(push.text == "nothing");
  two.barrier_service.lost(1, 11);
  CHECK(push.text == gone);
  CHECK(attended.text == gone);
  two.barrier_service.gather(BarrierService::Kind::barrier, 0, {}, barrier.respond());
  CHECK(barrier.text == gone);
  CHECK(two.steps.empty());
}

TEST_CASE("a step that cannot be applied fails for all who pushed it") {
  Two two;
  two.begin();
  two.failure = "too large";
  Answer a;
  Answer b;
  two.push(0, a);
  two.push(1, b);
  CHECK(a.text == "too large");
  CHECK(b.text == "too large");
  two.failure.clear();
  two.push(1, b);
  two.push(0, a);
  CHECK(a.text == "ok");
  CHECK(b.text == "ok");
}

TEST_CASE("closing tells everyone, now and later") {
  Two two;
  Answer attended;
  Answer barrier;
  Answer later;
  two.barrier_service.attend(0, attended.respond());
  two.barrier_service.gather(BarrierService::Kind::barrier, 0, {}, barrier.respond());
  two.barrier_service.close();
  CHECK(attended.text == "server 0 is stopping");
  CHECK(barrier.text == "server 0 is stopping");
  two.barrier_service.gather(BarrierService::Kind::all_reduce, 1, {1.0}, later.respond());
  CHECK(later.text == "server 0 is stopping");
  two.barrier_service.attend(1, later.respond());
  CHECK(later.text == "server 0 no longer attends to this connection");
}

namespace {

MembershipUpdate world(std::uint64_t generation, std::map<std::uint32_t, std::string> trainers) {
  return {generation, true, std::move(trainers)};
}

struct InPlace : Two {
  InPlace() { barrier_service.update(world(1, {{0, "a"}, {1, "b"}})); }
};

}  // namespace

TEST_CASE(
    "where trainers come and go a step and a barrier wait for the world without the lost one, and go on") {
  InPlace two;
  two.begin();
  Answer push;
  Answer barrier;
  two.push(0, push);
  two.barrier_service.gather(BarrierService::Kind::barrier, 0, {}, barrier.respond());
  two.barrier_service.lost(1, 11);
  CHECK(push.text == "nothing");
  CHECK(barrier.text == "nothing");
  two.barrier_service.update(world(2, {{0, "a"}}));
  CHECK(push.text == "ok");
  CHECK(barrier.text == "ok");
  CHECK(two.steps == std::vector<std::size_t>{1});
  Answer alone;
  two.push(0, alone);
  CHECK(alone.text == "ok");
}

TEST_CASE("a lost trainer that only sleeps is told that it is stale, and its push is not applied") {
  InPlace two;
  two.begin();
  Answer push;
  Answer attended;
  two.barrier_service.attend(1, attended.respond());
  two.push(1, push);
  two.barrier_service.update(world(2, {{0, "a"}}));
  CHECK(push.text == "trainer 1 comes with stale epoch 1, the job is at 2");
  CHECK(attended.text == push.text);
  Answer other;
  two.push(0, other);
  CHECK(other.text == "ok");
  CHECK(two.steps == std::vector<std::size_t>{1});
}

TEST_CASE("a trainer that comes late joins the pass under way, and the others wait for it from then on") {
  InPlace two;
  two.begin();
  Answer a, b, c, epoch;
  two.push(0, a);
  two.push(1, b);
  two.barrier_service.update(world(2, {{0, "a"}, {1, "b"}, {2, "c"}}));
  CHECK(two.barrier_service.hello({2, 12, 2, "c"}));
  two.push(0, a);
  two.push(1, b);
  two.barrier_service.gather(BarrierService::Kind::begin_epoch, 2, {1.0}, epoch.respond());
  CHECK(epoch.text == "ok");
  two.push(0, a = Answer());
  two.push(1, b = Answer());
  CHECK(a.text == "nothing");
  two.push(2, c);
  CHECK(a.text == "ok");
  CHECK(two.steps == std::vector<std::size_t>{2, 2, 3});
  std::array<Answer, 3> barrier;
  for (std::uint32_t t = 0; t < 3; ++t) {
    CHECK(barrier[0].text == "nothing");
    two.barrier_service.gather(BarrierService::Kind::barrier, t, {}, barrier[t].respond());
  }
  CHECK(barrier[0].text == "ok");
}

TEST_CASE(
    "a trainer that comes between two passes waits for the next one, and keeps nobody from getting there") {
  InPlace two;
  two.barrier_service.update(world(2, {{0, "a"}, {1, "b"}, {2, "c"}}));
  CHECK(two.barrier_service.hello({2, 12, 2, "c"}));
  Answer epoch;
  two.barrier_service.gather(BarrierService::Kind::begin_epoch, 2, {1.0}, epoch.respond());
  CHECK(epoch.text == "nothing");
  Answer a, b;
  two.barrier_service.gather(BarrierService::Kind::barrier, 0, {}, a.respond());
  two.barrier_service.gather(BarrierService::Kind::barrier, 1, {}, b.respond());
  CHECK(a.text == "ok");
  two.begin();
  CHECK(epoch.text == "ok");
  two.barrier_service.gather(BarrierService::Kind::barrier, 0, {}, (a = Answer()).respond());
  two.barrier_service.gather(BarrierService::Kind::barrier, 1, {}, (b = Answer()).respond());
  CHECK(a.text == "nothing");
  Answer c;
  two.barrier_service.gather(BarrierService::Kind::barrier, 2, {}, c.respond());
  CHECK(a.text == "ok");
}

TEST_CASE("who begins a pass early waits for the others to end theirs, also where trainers come and go") {
  InPlace two;
  two.begin();
  two.barrier_service.leave_epoch({0, 0});
  Answer early;
  two.barrier_service.gather(BarrierService::Kind::begin_epoch, 0, {1.0}, early.respond());
  CHECK(early.text == "nothing");
  two.barrier_service.leave_epoch({1, 0});
  Answer other;
  two.barrier_service.gather(BarrierService::Kind::begin_epoch, 1, {1.0}, other.respond());
  CHECK(early.text == "ok");
}

TEST_CASE("sums fit who has not heard of the newest trainers yet") {
  InPlace two;
  std::vector<double> sums[2];
  const auto keep = [&](std::size_t i) {
    return [&sums, i](Outcome outcome) {
      Message message = std::move(std::get<Message>(outcome));
      sums[i].resize(message.size() / sizeof(double));
      Reader(message.bytes()).read(sums[i].data(), message.size());
    };
  };
  two.barrier_service.gather(BarrierService::Kind::all_reduce, 0, {1, 2}, keep(0));
  two.barrier_service.gather(BarrierService::Kind::all_reduce, 1, {3, 4, 5}, keep(1));
  CHECK(sums[0] == std::vector<double>{4, 6});
  CHECK(sums[1] == std::vector<double>{4, 6, 5});
}

TEST_CASE("the job is done when all trainers of its world are") {
  InPlace two;
  two.barrier_service.goodbye(0);
  CHECK(two.done == 0);
  two.barrier_service.update(world(2, {{0, "a"}}));
  CHECK(two.done == 1);
}

TEST_CASE("a trainer whose goodbye overtakes its push leaves nobody waiting") {
  Two two;
  two.begin();
  Answer push;
  two.push(1, push);
  two.barrier_service.goodbye(1);
  CHECK(push.text == "trainer 1 has said goodbye to server 0");
}

TEST_CASE("who waits in which call is known, and whether nobody can go on") {
  Two two;
  Answer answer;
  const auto calls = [&] {
    std::vector<std::pair<std::uint32_t, std::string>> out;
    for (const TrainerWait& wait : two.barrier_service.waits().waits)
      out.emplace_back(wait.trainer, wait.call);
    return out;
  };
  using Calls = std::vector<std::pair<std::uint32_t, std::string>>;
  CHECK(calls().empty());
  two.begin();
  two.push(0, answer);
  CHECK(calls() == Calls{{0, "push"}});
  CHECK(two.barrier_service.waits().stuck.count() == 0);
  two.barrier_service.gather(BarrierService::Kind::barrier, 1, {}, answer.respond());
  CHECK(calls() == Calls{{0, "push"}, {1, "barrier"}});
  const auto later = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
  while (std::chrono::steady_clock::now() < later) std::this_thread::yield();
  CHECK(two.barrier_service.waits().stuck.count() >= 2);
  two.push(1, answer);
  CHECK(calls() == Calls{{1, "barrier"}});
  CHECK(two.barrier_service.waits().stuck.count() == 0);
  two.barrier_service.goodbye(0);
  CHECK(calls().empty());
  CHECK(text_of({{0, "barrier", std::chrono::milliseconds(61900)}, {3, "push", std::chrono::seconds(60)}}) ==
        "trainer 0 waits in barrier for 61 s, trainer 3 in push for 60 s");
}
