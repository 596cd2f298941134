#include "runtime/base/timeline.h"

#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using std::chrono::microseconds;

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a timeline is Chrome's JSON: complete events with microseconds, a lane for each thread") {
  const tests::TempDir folder;
  const auto timeline = Timeline::create(folder.file("traces"), "trainer-3.pass", "trainer 3");
  CHECK(timeline->path() == folder.file("traces/trainer-3.pass-1.json"));
  const auto begin = TimelineClock::now();
  {
    Track reader(timeline, "reader 0"), trainer(timeline, "thread 0");
    reader.add("parse", "reader", begin, begin + microseconds(12));
    const Span span(&trainer, "read", "stage");
  }
  timeline->close();
  const auto json = nlohmann::json::parse(content(timeline->path()));
  CHECK(json.at("otherData").at("process") == "trainer 3");
  CHECK(json.at("otherData").at("start_us").get<std::int64_t>() > 1'700'000'000'000'000);
  const auto& events = json.at("traceEvents");
  REQUIRE(events.size() == 5);
  CHECK(events[0].at("args").at("name") == "trainer 3");
  CHECK(events[1].at("args").at("name") == "reader 0");
  CHECK(events[2].at("tid") == 2);
  CHECK(events[3].at("name") == "read");
  CHECK(events[3].at("tid") == 2);
  CHECK(events[3].at("dur").get<double>() >= 0.0);
  CHECK(events[4].at("ph") == "X");
  CHECK(events[4].at("name") == "parse");
  CHECK(events[4].at("cat") == "reader");
  CHECK(events[4].at("dur") == 12.0);
  CHECK(events[4].at("ts").get<double>() >= 0.0);
}

TEST_CASE("each timeline is a file of its own, and one that is not ended has whole lines") {
  const tests::TempDir folder;
  const auto first = Timeline::create(folder.file(""), "t", "trainer 0");
  const auto second = Timeline::create(folder.file(""), "t", "trainer 0");
  CHECK(first->path().ends_with("t-1.json"));
  CHECK(second->path().ends_with("t-2.json"));
  Track track(first, "thread 0");
  const auto now = TimelineClock::now();
  track.add("read", "stage", now, now);
  CHECK(content(first->path()).find("\"read\"") == std::string::npos);
  track.flush();
  CHECK(content(first->path()).ends_with("\"dur\": 0.000, \"pid\": 1, \"tid\": 1}"));
  // More than a moment after what was written last, without being told.
  track.add("read", "stage", now, now + std::chrono::seconds(1));
  CHECK(content(first->path()).ends_with("\"dur\": 1000000.000, \"pid\": 1, \"tid\": 1}"));
  first->close();
  track.add("late", "stage", now, now + std::chrono::seconds(2));
  CHECK(content(first->path()).ends_with("}\n]}\n"));
}

TEST_CASE("without a timeline nothing is drawn") {
  Track track(nullptr, "thread 0");
  CHECK(!track.is_drawn());
  track.add("read", "stage", TimelineClock::now(), TimelineClock::now());
  const Span span(&track, "read", "stage"), none(nullptr, "read", "stage");
}

TEST_CASE("a timeline that cannot be written says where") {
  const tests::TempDir folder;
  const std::string path = folder.write("file", "");
  try {
    static_cast<void>(Timeline::create(path, "t", "trainer 0"));
    FAIL("there is no such folder");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "the timeline could not be written to " + path + "/t-1.json: Not a directory");
    CHECK(error.hint() == "name a folder that is there, with space left");
  }
}
