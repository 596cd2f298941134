#include "launcher/job/job_history.h"

#include <csignal>

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

event::ProcessExited exited(std::size_t index, int attempt, std::int64_t at, bool asked = false) {
  return {index,   100 + static_cast<pid_t>(index),
          attempt, {ExitReason::Kind::signaled, SIGKILL, false},
          asked,   at,
          64};
}

}  // namespace

TEST_CASE("the ends of an attempt are kept with their times, and forgotten when the process starts again") {
  JobHistory history;
  history.on_event(event::Contained{"subreaper", "", "", 7});
  history.on_event(event::ProcessStarted{0, 100, 0, 10});
  history.on_event(event::ProcessStarted{1, 101, 0, 20});
  CHECK(history.began_at() == 10);
  CHECK(history.containment() == "subreaper");
  CHECK(history.alive().size() == 2);
  history.on_event(exited(1, 0, 50));
  REQUIRE(history.ending_of(1) != nullptr);
  CHECK(history.ending_of(1)->started_at == 20);
  CHECK(history.ending_of(1)->max_rss_kib == 64);
  CHECK_FALSE(history.ending_of(1)->by_our_signal());
  CHECK(history.alive().size() == 1);
  history.on_event(event::ProcessStarted{1, 102, 1, 60});
  CHECK(history.ending_of(1) == nullptr);
}

TEST_CASE("who died of a signal of fleetrun, and who hung, is known") {
  JobHistory history;
  for (std::size_t i = 0; i < 3; ++i) history.on_event(event::ProcessStarted{i, 100, 0, 1});
  history.on_event(event::HangFound{{0, 1}, "", {0}, "sent no heartbeat for 30 s"});
  history.on_record(SignalSent{0, SIGKILL});
  history.on_event(exited(0, 0, 5, true));
  history.on_record(SignalSent{1, SIGTERM});
  history.on_record(SignalSent{1, SIGKILL});
  history.on_event(exited(1, 0, 6, true));
  history.on_record(SignalSent{2, SIGTERM});
  history.on_event(exited(2, 0, 7, true));
  CHECK(history.ending_of(0)->hung);
  CHECK(history.ending_of(0)->hang_why == "sent no heartbeat for 30 s");
  CHECK_FALSE(history.ending_of(1)->hung);  // silent because of the other
  CHECK_FALSE(history.ending_of(0)->as_told());
  CHECK(history.ending_of(1)->as_told());
  CHECK_FALSE(history.ending_of(2)->by_our_signal());
  history.on_event(event::ProcessStarted{2, 103, 1, 8});
  history.on_event(event::Injected{"SIGKILL to trainer 2", 2, SIGKILL});  // nobody asked it to stop
  history.on_event(exited(2, 1, 9));
  CHECK(history.ending_of(2)->by_our_signal());
  CHECK_FALSE(history.ending_of(2)->as_told());
}

TEST_CASE("each explained failure has the decision that followed it") {
  JobHistory history;
  Cause cause;
  cause.text = "exited with 1";
  history.on_event(event::FailureExplained{2, 0, cause});
  history.on_event(event::RestartDecided{RestartScope::group, 2, 1, {}, "crash, restart 1 of 1"});
  history.on_event(event::FailureExplained{1, 1, cause});
  history.on_event(event::GaveUp{"the budget is used up"});
  REQUIRE(history.attempts().size() == 2);
  CHECK(history.attempts()[0].restarted);
  CHECK(history.attempts()[0].decision == "crash, restart 1 of 1");
  CHECK_FALSE(history.attempts()[1].restarted);
  CHECK(history.attempts()[1].decision == "the budget is used up");
  CHECK(history.restarts() == 1);
}

TEST_CASE("a process that was not started has an end of its own kind") {
  JobHistory history;
  history.on_event(event::ProcessNotStarted{0, 0, "exec", 2});
  REQUIRE(history.ending_of(0) != nullptr);
  CHECK(history.ending_of(0)->said() == "could not be started");
  CHECK_FALSE(history.ending_of(0)->ok());
}
