#include "launcher/run/heartbeat_pace.h"

#include <doctest/doctest.h>

using namespace fleetrun::launcher;
using namespace std::chrono_literals;

namespace {

/// Trainers that make steps, looked at once per second.
struct Track {
  explicit Track(std::vector<std::string> roles)
      : judge(roles), heartbeats(roles.size()), steps(roles.size()) {}

  std::vector<Straggler> run(int seconds, const std::vector<double>& steps_per_second) {
    std::vector<Straggler> told;
    for (int i = 0; i < seconds; ++i) {
      now += 1s;
      for (std::size_t p = 0; p < steps.size(); ++p) {
        steps[p] += steps_per_second[p];
        if (static_cast<std::int64_t>(steps[p]) > 0) heartbeats[p].step = static_cast<std::int64_t>(steps[p]);
      }
      const auto slow = judge.look(now, heartbeats);
      told.insert(told.end(), slow.begin(), slow.end());
    }
    return told;
  }

  PaceJudge judge;
  std::vector<Heartbeat> heartbeats;
  std::vector<double> steps;
  std::chrono::nanoseconds now = 0s;
};

}  // namespace

TEST_CASE("who makes a tenth of the others' steps is told about, once") {
  Track track({"trainer", "trainer", "trainer"});
  const auto told = track.run(200, {10, 1, 10});
  REQUIRE(told.size() == 1);
  CHECK(told[0].index == 1);
  CHECK(told[0].seconds == doctest::Approx(1.0));
  CHECK(told[0].usual == doctest::Approx(0.1));
  CHECK(to_string(told[0]) == "is slow: 1 s a step, the others 0.1 s");
}

TEST_CASE("a process that recovers and slows down again is told about again") {
  Track track({"trainer", "trainer"});
  CHECK(track.run(50, {10, 1}).size() == 1);
  CHECK(track.run(50, {10, 10}).empty());
  CHECK(track.run(50, {10, 1}).size() == 1);
}

TEST_CASE("differences below the ratio, few steps, and a role of one are nobody's fault") {
  CHECK(Track({"trainer", "trainer"}).run(100, {10, 4}).empty());
  CHECK(Track({"trainer", "trainer"}).run(5, {10, 1}).empty());
  CHECK(Track({"reader", "trainer"}).run(100, {10, 1}).empty());
}

TEST_CASE("steps so short that nobody cares are not compared") {
  CHECK(Track({"trainer", "trainer"}).run(100, {10000, 1000}).empty());
}

TEST_CASE("processes that wait for each other are told apart by their own work") {
  Track track({"trainer", "trainer", "trainer"});
  for (std::size_t i = 0; i < 3; ++i) track.heartbeats[i].work_seconds = i == 2 ? 0.9 : 0.1;
  const auto told = track.run(100, {1, 1, 1});
  REQUIRE(told.size() == 1);
  CHECK(told[0].index == 2);
  CHECK(told[0].seconds == doctest::Approx(0.9));
}

TEST_CASE("a process that starts anew, or counts from the beginning, is not compared with its past") {
  Track track({"trainer", "trainer"});
  track.run(20, {10, 10});
  track.steps[1] = 0;
  CHECK(track.run(4, {10, 1}).empty());
  track.judge.forget(1);
  CHECK(track.run(4, {10, 1}).empty());
  CHECK(track.run(20, {10, 1}).size() == 1);
}
