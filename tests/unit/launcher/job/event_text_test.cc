#include "launcher/job/event_text.h"

#include <signal.h>

#include <doctest/doctest.h>

#include "tests/support/job_plan.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

TEST_CASE("a stop names whom it waits for, with pids, and for how long") {
  Plan plan = tests::job_plan(3, 1);
  plan.roles[0].grace = std::chrono::seconds(5);
  plan.roles[1].grace = std::chrono::milliseconds(30'000);
  EventText text(plan);
  for (std::size_t i = 0; i < 4; ++i) text.on(event::ProcessStarted{i, static_cast<pid_t>(4710 + i), 0, 0});
  CHECK(text.on(event::StopBegan{"fleetrun got SIGINT", {1, 3}}) ==
        Sentence{LogLevel::info,
                 "fleetrun got SIGINT: waiting up to 30 s for trainer 0 (pid 4711) and trainer 2 (pid 4713); "
                 "a second signal kills at once"});
  CHECK(text.on(event::StopBegan{"", {0}}).text ==
        "waiting up to 5 s for server 0 (pid 4710); a second signal kills at once");
  CHECK(text.on(event::StopBegan{"over", {}}).text.empty());
  CHECK(text.on(event::GraceElapsed{{1}}) ==
        Sentence{LogLevel::warning,
                 "trainer 0 (pid 4711) did not end within the grace (--grace) and is killed"});
  // After a restart the new pid is named.
  text.on(event::ProcessStarted{1, 5000, 1, 0});
  CHECK(text.on(event::GraceElapsed{{1}}).text.starts_with("trainer 0 (pid 5000) did not end"));
}

TEST_CASE("many names are counted") {
  const Plan plan = tests::job_plan(20);
  std::vector<std::size_t> all(20);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  EventText text(plan);
  CHECK(text.on(event::GraceElapsed{all}).text ==
        "trainer 0, trainer 1, trainer 2, trainer 3, trainer 4, trainer 5, trainer 6, "
        "trainer 7 and 12 others did not end within the grace (--grace) and are killed");
  all.resize(9);
  CHECK(text.on(event::GraceElapsed{all})
            .text.starts_with("trainer 0, trainer 1, trainer 2, trainer 3, trainer 4, trainer 5, trainer 6, "
                              "trainer 7 and trainer 8 did"));
}

TEST_CASE("an end that nobody asked for is told, any other is detail") {
  const Plan plan = tests::job_plan(2);
  EventText text(plan);
  const ExitReason killed{ExitReason::Kind::signaled, 9, false}, well{};
  CHECK(text.on(event::ProcessExited{1, 42, 0, killed, false, 0, 0}) ==
        Sentence{LogLevel::info, "trainer 1 (pid 42) was killed by SIGKILL"});
  CHECK(text.on(event::ProcessExited{1, 42, 0, killed, true, 0, 0}).level == LogLevel::debug);
  CHECK(text.on(event::ProcessExited{1, 42, 0, well, false, 0, 0}).level == LogLevel::debug);
}

TEST_CASE("restarts say what is started again, why and when") {
  const Plan plan = tests::job_plan(2);
  EventText text(plan);
  CHECK(text.on(event::RestartDecided{RestartScope::group, 1, 1, std::chrono::milliseconds(0),
                                      "crash, restart 1 of 3"})
            .text ==
        "all processes are started again, because trainer 1 failed: attempt 1 (crash, restart 1 of 3)");
  CHECK(text.on(event::RestartDecided{RestartScope::process, 1, 2, std::chrono::milliseconds(1500), "oom"})
            .text == "trainer 1 is started again: attempt 2 in 1.5 s (oom)");
  CHECK(text.on(event::GaveUp{"used up"}) == Sentence{LogLevel::warning, "no restart: used up"});
}

TEST_CASE("every event is accepted, and signals are named") {
  const Plan plan = tests::job_plan(2);
  EventText text(plan);
  CHECK(text.on(event::AttemptBegan{0}) == Sentence{});
  CHECK(text.on(event::SignalReceived{SIGINT, true}).text == "got SIGINT again: killing all now");
  CHECK(text.on(event::SignalForwarded{SIGUSR1}).text == "SIGUSR1 is passed on to all processes");
  CHECK(text.on(event::Contained{"subreaper", "", "no cgroup", 3}).text ==
        "containment subreaper (no cgroup)");
  CHECK(text.on(event::ProcessNotStarted{0, 0, "exec", 2}).text ==
        "trainer 0 could not be started: No such file or directory (exec)");
  CHECK(text.on(event::AllRunning{}).text == "all 2 processes run");
  CHECK(text.on(event::GenerationBegan{1, 17, {1, 0}, {0}, {{0, 0, 1}}}).text ==
        "trainer 1 takes the place of trainer 0 as rank 0; step 17 is next (generation 1)");
  CHECK(text.on(event::GenerationBegan{2, -1, {0, 1}, {}, {}}).text ==
        "the trainers meet again (generation 2)");
  CHECK(text.on(event::RoleReady{0}).text == "trainer is ready");
  CHECK(text.on(event::FailureExplained{0, 0, {FailureKind::crash, "exited with 3", "", "", "look"}}).text ==
        "trainer 0 exited with 3\n  hint: look");
  CHECK(text.on(event::HangFound{{0, 1}, "stack", {0}}).text == "the job hangs: trainer 0\nstack");
  CHECK(text.on(event::Injected{"kill rank=1"}).text == "injected: kill rank=1");
  CHECK(text.on(event::Unkillable{7, "state D"}).text == "process 7 was killed and does not end: state D");
  CHECK(text.on(event::Warning{"mind"}) == Sentence{LogLevel::warning, "mind"});
  CHECK(text.on(event::JobEnded{137}).text == "the job has ended with exit status 137");
}
