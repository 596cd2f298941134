// Trainers that come back as another process, in sync mode.
#include <doctest/doctest.h>

#include "ps/sync/barrier_service.h"
#include "tests/support/barrier_answer.h"

using namespace fleetrun::ps;
using namespace fleetrun::tests;

namespace {

// A barrier service of two trainers that keeps its events as a log does.
struct Two {
  std::vector<Bytes> log;
  std::vector<std::size_t> steps;
  BarrierService barrier_service;

  explicit Two(BarrierService::GoesOn goes_on = BarrierService::GoesOn::yes)
      : barrier_service("server 0", 2,
                        {[this](const std::vector<Contribution>& step) {
                           steps.push_back(step.size());
                           barrier_service.count(step);
                         },
                         [] {},
                         kept_in(log),
                         {},
                         goes_on}) {}

  void come() {
    barrier_service.hello(0, 10);
    barrier_service.hello(1, 11);
  }
  void all(BarrierService::Kind kind, std::vector<double> values, std::uint64_t number) {
    Answer ignored;
    for (const std::uint32_t trainer : {0u, 1u})
      barrier_service.gather(kind, trainer, values, ignored.respond(), number);
  }
  void push(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t number, Answer& answer) {
    Contribution push{{trainer, 0}, std::make_unique<wire::PushRequest>(), answer.respond()};
    push.change = {{trainer, incarnation}, number};
    barrier_service.push(std::move(push));
  }
  /// Trainer 1's connection ends, and another process says hello for it.
  void succeed() {
    REQUIRE(barrier_service.leave_for_now(1, 11, 0));
    barrier_service.hello(1, 12);
  }
};

using Steps = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("another process of a trainer that is away goes on for it") {
  Two two;
  two.come();
  two.all(BarrierService::Kind::barrier, {}, 1);
  two.all(BarrierService::Kind::all_reduce, {2.0}, 1);
  two.all(BarrierService::Kind::all_reduce, {3.0}, 2);
  two.all(BarrierService::Kind::begin_epoch, {1.0}, 1);
  Answer first, second, ignored;
  two.push(0, 10, 1, ignored);
  two.push(1, 11, 1, ignored);
  two.push(1, 11, 2, first);
  two.succeed();
  CHECK(first.text == "another trainer 1 came");
  CHECK(two.barrier_service.rounds(1) == BarrierService::Rounds{1, 2, 1});
  CHECK(two.barrier_service.steps(1) == Steps{1});

  SUBCASE("it has its place in the pass") {
    two.push(0, 10, 2, ignored);
    CHECK(two.steps == std::vector<std::size_t>{2});
    two.push(1, 11, 3, second);
    CHECK(second.text == "another trainer 1 came");
    two.push(1, 12, 1, second);
    CHECK(second.text == "ok");
    CHECK(two.steps == std::vector<std::size_t>{2, 2});
    CHECK(two.barrier_service.steps(1) == Steps{2});
  }
  SUBCASE("sums have their results, from the first one on") {
    two.barrier_service.gather(BarrierService::Kind::all_reduce, 1, {2.0}, first.respond(), 1);
    CHECK(first.value == 4.0);
    two.barrier_service.gather(BarrierService::Kind::all_reduce, 1, {3.0}, second.respond(), 2);
    CHECK(second.value == 6.0);
  }
  SUBCASE("a sum that is not kept any more is an error that says what to do") {
    for (std::uint64_t number = 3; number < 40; ++number)
      two.all(BarrierService::Kind::all_reduce, std::vector<double>(1 << 17), number);
    two.barrier_service.gather(BarrierService::Kind::all_reduce, 1, {2.0}, first.respond(), 1);
    CHECK(first.text ==
          "trainer 1 cannot go on alone: it asks for its sum 1, which server 0 no longer keeps");
  }
  SUBCASE("it is lost when it does not come back either") {
    two.push(0, 10, 2, first);
    REQUIRE(two.barrier_service.leave_for_now(1, 12, 0));
    CHECK(first.text == "another trainer 1 came");
    CHECK(two.barrier_service.give_up(1, 12, 0));
  }
  SUBCASE("its end before the last pass of the others is refused, also after a checkpoint") {
    Bytes description;
    two.barrier_service.describe([&](const Bytes& bytes) { description = bytes; });
    Two restored;
    Reader reader(description.bytes());
    restored.barrier_service.restore(reader);
    for (Two* service : {&two, &restored}) {
      Answer answer;
      service->barrier_service.goodbye(1);
      service->barrier_service.leave_epoch({0, 0}, 1);
      service->barrier_service.gather(BarrierService::Kind::begin_epoch, 0, {1.0}, answer.respond(), 2);
      CHECK(answer.text ==
            "trainer 1 cannot go on alone: it was started again, and has ended before the last pass of the "
            "others");
    }
  }
  SUBCASE("all of it, told again, makes the same state; so does its description") {
    Two replayed;
    for (const Bytes& event : two.log) {
      Reader reader(event.bytes());
      replayed.barrier_service.replay(read_barrier_event(reader));
    }
    CHECK(replayed.barrier_service.rounds(1) == BarrierService::Rounds{1, 2, 1});
    CHECK(replayed.barrier_service.steps(1) == Steps{0});  // steps are records of their own
    Bytes description;
    two.barrier_service.describe([&](const Bytes& bytes) { description = bytes; });
    Two restored;
    Reader reader(description.bytes());
    restored.barrier_service.restore(reader);
    CHECK(reader.remaining() == 0);
    CHECK(restored.barrier_service.steps(1) == Steps{1});
    restored.barrier_service.gather(BarrierService::Kind::all_reduce, 1, {2.0}, first.respond(), 1);
    CHECK(first.value == 4.0);
    CHECK(restored.barrier_service.go_on() == std::vector<ClientId>{{0, 10}, {1, 12}});
    restored.barrier_service.hello(1, 13);
    CHECK(restored.barrier_service.steps(1) == Steps{1});
  }
}

TEST_CASE("so does one that comes after a goodbye, but not where its trainer was lost, or in another mode") {
  Two two;
  two.come();
  two.all(BarrierService::Kind::begin_epoch, {2.0}, 1);
  two.barrier_service.goodbye(1);
  two.barrier_service.hello(1, 12);
  CHECK(two.barrier_service.steps(1) == Steps{0, 0});
  CHECK(two.barrier_service.rounds(1)[2] == 1);

  Two lost;
  lost.come();
  lost.all(BarrierService::Kind::barrier, {}, 1);
  lost.barrier_service.lost(1, 11);
  lost.barrier_service.hello(1, 12);
  CHECK(lost.barrier_service.rounds(1) == BarrierService::Rounds{});

  Two async(BarrierService::GoesOn::no);
  async.come();
  async.all(BarrierService::Kind::barrier, {}, 1);
  async.succeed();
  CHECK(async.barrier_service.rounds(1) == BarrierService::Rounds{});
}

TEST_CASE("who goes on after a step that is being applied is told so when it is in the tables") {
  bool answered = false, was_answered = true;
  BarrierService* barrier_service = nullptr;
  BarrierService real("server 0", 1,
                      {[&](const std::vector<Contribution>&) {
                         REQUIRE(barrier_service->leave_for_now(0, 10, 0));
                         barrier_service->hello(0, 11);
                         barrier_service->when_applied(0, [&] { answered = true; });
                         was_answered = answered;
                         CHECK(barrier_service->steps(0) == Steps{1});
                       },
                       [] {},
                       {},
                       {},
                       BarrierService::GoesOn::yes});
  barrier_service = &real;
  real.hello(0, 10);
  Answer ignored;
  real.gather(BarrierService::Kind::begin_epoch, 0, {1.0}, ignored.respond(), 1);
  real.push({{0, 0}, std::make_unique<wire::PushRequest>(), ignored.respond(), {{0, 10}, 1}});
  CHECK(!was_answered);
  CHECK(answered);
  answered = false;
  real.when_applied(0, [&] { answered = true; });
  CHECK(answered);
}
