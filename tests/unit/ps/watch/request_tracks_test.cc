#include "ps/watch/request_tracks.h"

#include <fstream>
#include <thread>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/temp_dir.h"

using namespace fleetrun;

TEST_CASE("each thread that serves requests has a lane, and there are none without a timeline") {
  const tests::TempDir dir;
  CHECK(ps::RequestTracks(nullptr).of_this_thread() == nullptr);
  const auto timeline = Timeline::create(dir.file(""), "server-0.run", "server 0");
  {
    ps::RequestTracks tracks(timeline);
    Track* const own = tracks.of_this_thread();
    CHECK(tracks.of_this_thread() == own);
    std::jthread([&] { CHECK(tracks.of_this_thread() != own); }).join();
    const Span span(own, "pull", "request");
  }
  timeline->close();
  std::ifstream file(timeline->path());
  const auto events = nlohmann::json::parse(file).at("traceEvents");
  REQUIRE(events.size() == 4);
  CHECK(events[1].at("args").at("name") == "requests 0");
  CHECK(events[2].at("args").at("name") == "requests 1");
  CHECK(events[3].at("name") == "pull");
}
