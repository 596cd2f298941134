#include "launcher/job/job_story.h"

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
  JobStory story;
  story.on_event(event::Contained{"subreaper", "", "", 7});
  story.on_event(event::ProcessStarted{0, 100, 0, 10});
  story.on_event(event::ProcessStarted{1, 101, 0, 20});
  CHECK(story.began_at() == 10);
  CHECK(story.containment() == "subreaper");
  CHECK(story.alive().size() == 2);
  story.on_event(exited(1, 0, 50));
  REQUIRE(story.ending_of(1) != nullptr);
  CHECK(story.ending_of(1)->started_at == 20);
  CHECK(story.ending_of(1)->max_rss_kib == 64);
  CHECK_FALSE(story.ending_of(1)->by_our_signal());
  CHECK(story.alive().size() == 1);
  story.on_event(event::ProcessStarted{1, 102, 1, 60});
  CHECK(story.ending_of(1) == nullptr);
}

TEST_CASE("who died of a signal of fleetrun, and who hung, is known") {
  JobStory story;
  for (std::size_t i = 0; i < 3; ++i) story.on_event(event::ProcessStarted{i, 100, 0, 1});
  story.on_event(event::HangFound{{0, 1}, "", {0}, "sent no heartbeat for 30 s"});
  story.note_signal(0, SIGKILL);
  story.on_event(exited(0, 0, 5, true));
  story.note_signal(1, SIGTERM);
  story.note_signal(1, SIGKILL);
  story.on_event(exited(1, 0, 6, true));
  story.note_signal(2, SIGTERM);
  story.on_event(exited(2, 0, 7, true));
  CHECK(story.ending_of(0)->hung);
  CHECK(story.ending_of(0)->hang_why == "sent no heartbeat for 30 s");
  CHECK_FALSE(story.ending_of(1)->hung);  // silent because of the other
  CHECK_FALSE(story.ending_of(0)->as_told());
  CHECK(story.ending_of(1)->as_told());
  CHECK_FALSE(story.ending_of(2)->by_our_signal());
  story.on_event(event::ProcessStarted{2, 103, 1, 8});
  story.on_event(event::Injected{"SIGKILL to trainer 2", 2, SIGKILL});  // nobody asked it to stop
  story.on_event(exited(2, 1, 9));
  CHECK(story.ending_of(2)->by_our_signal());
  CHECK_FALSE(story.ending_of(2)->as_told());
}

TEST_CASE("each explained failure has the decision that followed it") {
  JobStory story;
  Cause cause;
  cause.text = "exited with 1";
  story.on_event(event::FailureExplained{2, 0, cause});
  story.on_event(event::RestartDecided{RestartScope::group, 2, 1, {}, "crash, restart 1 of 1"});
  story.on_event(event::FailureExplained{1, 1, cause});
  story.on_event(event::GaveUp{"the budget is used up"});
  REQUIRE(story.attempts().size() == 2);
  CHECK(story.attempts()[0].restarted);
  CHECK(story.attempts()[0].decision == "crash, restart 1 of 1");
  CHECK_FALSE(story.attempts()[1].restarted);
  CHECK(story.attempts()[1].decision == "the budget is used up");
  CHECK(story.restarts() == 1);
}

TEST_CASE("a process that was not started has an end of its own kind") {
  JobStory story;
  story.on_event(event::ProcessNotStarted{0, 0, "exec", 2});
  REQUIRE(story.ending_of(0) != nullptr);
  CHECK(story.ending_of(0)->said() == "could not be started");
  CHECK_FALSE(story.ending_of(0)->ok());
}
