#include "ps/watch/request_lanes.h"

#include <fstream>
#include <thread>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/temp_dir.h"

using namespace fleetrun;

TEST_CASE("each thread that serves requests has a lane, and there are none without a timeline") {
  const tests::TempDir dir;
  CHECK(ps::RequestLanes(nullptr).of_this_thread() == nullptr);
  const auto timeline = Timeline::create(dir.file(""), "server-0.run", "server 0");
  {
    ps::RequestLanes lanes(timeline);
    Lane* const own = lanes.of_this_thread();
    CHECK(lanes.of_this_thread() == own);
    std::jthread([&] { CHECK(lanes.of_this_thread() != own); }).join();
    const Bar bar(own, "pull", "request");
  }
  timeline->close();
  std::ifstream file(timeline->path());
  const auto events = nlohmann::json::parse(file).at("traceEvents");
  REQUIRE(events.size() == 4);
  CHECK(events[1].at("args").at("name") == "requests 0");
  CHECK(events[2].at("args").at("name") == "requests 1");
  CHECK(events[3].at("name") == "pull");
}
