#include "launcher/status/event_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <set>

#include "tests/support/job_plan.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using Json = nlohmann::json;

namespace {

constexpr EventTime kNow{1'667'000'000'123'456'789, 5'000'000'000};

Json line(const JobEvent& event) {
  const std::string text = to_json_line(event, tests::job_plan(2, 1), kNow);
  CHECK(text.ends_with("}\n"));
  CHECK(text.find('\n') == text.size() - 1);
  return Json::parse(text);
}

/// One of each type, with something in every field.
std::vector<JobEvent> one_of_each() {
  const Cause cause{FailureKind::crash, "exited with 3", "line\nof the log", "sig", "look"};
  return {event::Contained{"pidns", "/sys/fs/cgroup/a", "", 7},
          event::AttemptBegan{1},
          event::ProcessStarted{1, 42, 1, 4'000'000'000},
          event::ProcessExited{1, 42, 1, {ExitReason::Kind::exited, 3, false}, false, 4'000'000'000, 0},
          event::ProcessNotStarted{2, 0, "exec", 2},
          event::AllRunning{},
          event::RoleReady{0},
          event::StopBegan{"trainer 0 failed", {0, 2}},
          event::GraceElapsed{{2}},
          event::FailureExplained{1, 1, cause},
          event::RestartDecided{RestartScope::group, 1, 2, std::chrono::milliseconds(1500),
                                "crash, restart 1 of 3"},
          event::GaveUp{"all used up"},
          event::SignalReceived{2, true},
          event::SignalForwarded{10},
          event::HangFound{{1}, "stacks"},
          event::Injected{"kill rank=1"},
          event::Unkillable{42, "stuck in the kernel"},
          event::LogsTruncated{0, 10, 28},
          event::Warning{"look out"},
          event::WorldBegan{2, 1, 4, 1, {"h1", "h2"}, "0123456789abcdef"},
          event::WorldEnded{"h3 was lost", false},
          event::PodStands{true},
          event::GenerationBegan{1, 17, {0, 2}, {1}, {{1, 1, 2}}},
          event::News{"h3 has joined", false},
          event::JobEnded{137},
          event::ServersMove{2, 5, 3, 3, true, 850}};
}

}  // namespace

TEST_CASE("every type of event has a line of its own that begins with schema, time, at and type") {
  std::set<std::string> types;
  for (const JobEvent& event : one_of_each()) {
    const Json json = line(event);
    CHECK(json.at("schema") == 1);
    CHECK(json.at("time").get<std::string>().size() == 27);
    CHECK(json.at("at").is_number_integer());
    types.insert(json.at("type").get<std::string>());
  }
  CHECK(types.size() == std::variant_size_v<JobEvent>);
}

TEST_CASE("a process's own time is taken, by both clocks") {
  const Json json = line(event::ProcessStarted{1, 42, 1, 4'000'000'000});
  CHECK(json.at("at") == 4'000'000'000);
  CHECK(json.at("time") == "2022-10-28T23:33:19.123456Z");
  CHECK(line(event::AllRunning{}).at("time") == "2022-10-28T23:33:20.123456Z");
  CHECK(json.at("process") == "trainer 0");
  CHECK(json.at("role") == "trainer");
  CHECK(json.at("rank") == 0);
  CHECK(json.at("pid") == 42);
}

TEST_CASE("an exit says its status, and the code or the signal") {
  Json json = line(event::ProcessExited{1, 42, 1, {ExitReason::Kind::exited, 3, false}, true, 0, 0});
  CHECK(json.at("status") == 3);
  CHECK(json.at("code") == 3);
  CHECK(json.at("asked") == true);
  CHECK(!json.contains("signal"));
  json = line(event::ProcessExited{1, 42, 1, {ExitReason::Kind::signaled, 11, true}, false, 0, 0});
  CHECK(json.at("status") == 139);
  CHECK(json.at("signal") == "SIGSEGV");
  CHECK(json.at("core") == true);
  CHECK(!json.contains("code"));
}

TEST_CASE("processes are named, and durations have their unit") {
  CHECK(line(event::StopBegan{"because", {0, 2}}).at("waiting_for") ==
        Json::array({"server 0", "trainer 1"}));
  CHECK(line(event::GraceElapsed{{}}).at("still_alive") == Json::array());
  const Json json =
      line(event::RestartDecided{RestartScope::process, 0, 2, std::chrono::milliseconds(1500), "why"});
  CHECK(json.at("scope") == "process");
  CHECK(json.at("backoff_ms") == 1500);
  CHECK(line(event::ProcessNotStarted{0, 0, "exec", 2}).at("error") == "No such file or directory");
}

TEST_CASE("any bytes in a text make a valid line") {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  const std::string text = line(event::Warning{bytes + "\xe2\x82\xac\"\\"}).at("text").get<std::string>();
  CHECK(text.substr(0, 128) == bytes.substr(0, 128));
  CHECK(text.ends_with("\xe2\x82\xac\"\\"));
  CHECK(text.find("\xef\xbf\xbd") == 128);
}

TEST_CASE("the first line says what job it is, and one says what is missing") {
  Json json = Json::parse(job_began_line(tests::job_plan(2), 4711, kNow));
  CHECK(json.at("type") == "job_began");
  CHECK(json.at("job_id") == "default");
  CHECK(json.at("pod") == "abcdef");
  CHECK(json.at("fleetrun_pid") == 4711);
  CHECK(json.at("processes") == 2);
  CHECK(json.at("version").is_string());
  json = Json::parse(events_lost_line(12, kNow));
  CHECK(json.at("type") == "events_lost");
  CHECK(json.at("count") == 12);
}
