#include "launcher/model/restart_policy.h"

#include <doctest/doctest.h>

namespace fleetrun::launcher {
namespace {

using std::chrono::milliseconds;

RestartRules budget_of(int each) {
  RestartRules rules;
  rules.budgets.fill(each);
  return rules;
}

FailureRecord crash(std::string signature, int ran_ms = 100) {
  FailureRecord failure;
  failure.who = "trainer 1";
  failure.signature = std::move(signature);
  failure.ran = milliseconds(ran_ms);
  return failure;
}

std::string words(const RestartDecision& decision) {
  if (const auto* restart = std::get_if<Restart>(&decision)) return restart->why;
  return "no: " + std::get<GiveUp>(decision).why;
}

}  // namespace

TEST_CASE("a job without budgets does not restart, and there is nothing to say about it") {
  RestartPolicy policy(budget_of(0), 1);
  CHECK(policy.on_failure(crash("a"), RestartScope::group) == RestartDecision(GiveUp{}));
}

TEST_CASE("each kind of failure has a budget of its own") {
  RestartRules rules;
  rules.budgets = {2, 1, -1, 0, 0};  // crash, out_of_memory, preemption, hang, not_started
  RestartPolicy policy(rules, 1);
  CHECK(words(policy.on_failure(crash("a"), RestartScope::group)) == "crash, restart 1 of 2");
  FailureRecord memory = crash("b");
  memory.kind = FailureKind::out_of_memory;
  CHECK(words(policy.on_failure(memory, RestartScope::group)) == "oom, restart 1 of 1");
  memory.signature = "c";
  CHECK(words(policy.on_failure(memory, RestartScope::group)) == "no: all 1 restarts after oom are used up");
  FailureRecord preempted = crash("d");
  preempted.kind = FailureKind::preemption;
  for (int i = 1; i <= 9; ++i)
    CHECK(words(policy.on_failure(preempted, RestartScope::group)) ==
          "preemption, restart " + std::to_string(i));
  CHECK(words(policy.on_failure(crash("e"), RestartScope::group)) == "crash, restart 2 of 2");
  CHECK(words(policy.on_failure(crash("f"), RestartScope::group)) ==
        "no: all 2 restarts after crash are used up");
}

TEST_CASE("the same failure in a row ends it at the limit, unless there was progress") {
  RestartRules limited = budget_of(100);
  limited.same_failures = 3;
  RestartPolicy moving(limited, 1);
  for (int step = 1; step <= 10; ++step) {
    FailureRecord failure = crash("same");
    failure.progress = step;
    CHECK(std::holds_alternative<Restart>(moving.on_failure(failure, RestartScope::group)));
  }
  RestartPolicy stuck(limited, 1);
  FailureRecord failure = crash("same");
  failure.progress = 7;
  CHECK(std::holds_alternative<Restart>(stuck.on_failure(failure, RestartScope::group)));
  CHECK(std::holds_alternative<Restart>(stuck.on_failure(failure, RestartScope::group)));
  CHECK(words(stuck.on_failure(failure, RestartScope::group)) ==
        "no: the same failure 3 times in a row, and no progress");
}

TEST_CASE("a total counts every kind of failure, and no healthy run sets it back") {
  RestartRules rules = budget_of(2);
  rules.total = 2;
  RestartPolicy policy(rules, 1);
  FailureRecord memory = crash("b", 600'000);
  memory.kind = FailureKind::out_of_memory;
  CHECK(words(policy.on_failure(crash("a"), RestartScope::group)) == "crash, restart 1 of 2");
  CHECK(words(policy.on_failure(memory, RestartScope::group)) == "oom, restart 1 of 2");
  CHECK(words(policy.on_failure(crash("c", 600'000), RestartScope::group)) ==
        "no: all 2 restarts are used up");
}

TEST_CASE("the same failure uses the whole budget up without a limit, and where nobody says how far it is") {
  RestartRules limited = budget_of(9);
  limited.same_failures = 3;
  RestartPolicy silent(limited, 1), unlimited(budget_of(9), 1);
  for (int i = 1; i <= 9; ++i) {
    CHECK(words(silent.on_failure(crash("same"), RestartScope::group)) ==
          "crash, restart " + std::to_string(i) + " of 9");
    FailureRecord failure = crash("same");
    failure.progress = 7;
    CHECK(std::holds_alternative<Restart>(unlimited.on_failure(failure, RestartScope::group)));
  }
  CHECK(words(silent.on_failure(crash("same"), RestartScope::group)) ==
        "no: all 9 restarts after crash are used up");
}

TEST_CASE("another process or another signature is not the same failure") {
  RestartPolicy policy(budget_of(100), 1);
  for (int i = 0; i < 8; ++i) {
    FailureRecord failure = crash("same");
    failure.who = i % 2 == 0 ? "trainer 0" : "trainer 1";
    CHECK(std::holds_alternative<Restart>(policy.on_failure(failure, RestartScope::group)));
  }
}

TEST_CASE("the first restart is immediate, later ones wait for up to twice as long each, with an upper end") {
  RestartRules rules = budget_of(-1);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    RestartPolicy policy(rules, seed);
    for (int i = 0; i < 40; ++i) {
      const auto decision = policy.on_failure(crash(std::to_string(i)), RestartScope::process);
      const milliseconds backoff = std::get<Restart>(decision).backoff;
      const std::int64_t max = i == 0 ? 0 : i > 6 ? 60'000 : 1'000 << (i - 1);
      CHECK(backoff.count() >= 0);
      CHECK(backoff.count() <= max);
    }
  }
}

TEST_CASE("a long healthy run sets backoff and budgets back") {
  RestartPolicy policy(budget_of(1), 1);
  CHECK(std::holds_alternative<Restart>(policy.on_failure(crash("a"), RestartScope::group)));
  CHECK(std::holds_alternative<GiveUp>(policy.on_failure(crash("b"), RestartScope::group)));
  const auto decision = policy.on_failure(crash("c", 600'000), RestartScope::group);
  CHECK(decision == RestartDecision(Restart{milliseconds(0), "crash, restart 1 of 1"}));
}

TEST_CASE("what could not be started, and a role that is not restarted, are not started again") {
  RestartPolicy policy(budget_of(5), 1);
  FailureRecord failure = crash("a");
  CHECK(words(policy.on_failure(failure, RestartScope::nobody)) ==
        "no: trainer 1 is of a role that is not restarted");
  failure.kind = FailureKind::not_started;
  CHECK(words(policy.on_failure(failure, RestartScope::group)) ==
        "no: what could not be started once cannot be started again");
}

}  // namespace fleetrun::launcher
