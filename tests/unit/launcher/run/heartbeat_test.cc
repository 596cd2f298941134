#include "launcher/run/heartbeat.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

using namespace fleetrun::launcher;

namespace {

Heartbeat after(std::string_view bytes) {
  HeartbeatParser parser;
  parser.feed(bytes);
  return parser.heartbeat();
}

}  // namespace

TEST_CASE("a heartbeat's lines are steps, or just life") {
  struct Row {
    std::string_view bytes;
    Heartbeat heartbeat;
  };
  const Row rows[] = {
      {"", {0, {}, {}}},
      {"beat\n", {1, {}, {}}},
      {"step 120\n", {1, 120, {}}},
      {"step 120 0.35\n", {1, 120, 0.35}},
      {"step 120 1e-3\nstep 121\n", {2, 121, {}}},
      {"step 5\nbeat\n", {2, 5, {}}},
      {"step 9\nstep 3\n", {2, 3, {}}},
      {"step -1\n", {1, -1, {}}},
      {"step 12", {1, {}, {}}},  // not a whole line yet
      {"\n", {1, {}, {}}},
      {"step\n", {1, {}, {}}},
      {"step x\n", {1, {}, {}}},
      {"step  7\n", {1, {}, {}}},
      {"step 7 soon\n", {1, 7, {}}},
      {"step 7 -1\n", {1, 7, {}}},
      {"step 7 nan\n", {1, 7, {}}},
      {"step 7 inf\n", {1, 7, {}}},
      {"step 99999999999999999999\n", {1, {}, {}}},
      {std::string_view("\0\xff\x80\n", 4), {1, {}, {}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.bytes);
    CHECK(after(row.bytes) == row.heartbeat);
  }
}

TEST_CASE("a line ends with values, of which the last one of a name counts") {
  const Heartbeat heartbeat = after(
      "step 7 0.5 loss=0.25 auc=7e-1\nbeat loss=nan 损失=-inf\nbeat =2 x= y=1z z w=1=2 v=+1 \xff=1 a\tb=1\n");
  CHECK(heartbeat.step == 7);
  CHECK(heartbeat.work_seconds == 0.5);
  REQUIRE(heartbeat.values.size() == 3);
  CHECK(std::isnan(heartbeat.values.at("loss")));
  CHECK(heartbeat.values.at("auc") == 0.7);
  CHECK(heartbeat.values.at("损失") == -std::numeric_limits<double>::infinity());
  CHECK(after("step 8 loss=1\n").work_seconds == std::nullopt);
}

TEST_CASE("a process that makes up names is kept few of them") {
  HeartbeatParser parser;
  for (int i = 0; i < 1000; ++i) parser.feed("beat n" + std::to_string(i) + "=1\n");
  parser.feed("beat n0=2 " + std::string(65, 'n') + "=1\n");
  CHECK(parser.heartbeat().values.size() == 32);
  CHECK(parser.heartbeat().values.at("n0") == 2);
}

TEST_CASE("where the bytes are split makes no difference") {
  constexpr std::string_view kBytes = "step 1 0.5\nbeat\nstep 23\nsomething else\nstep 456 0.25\n";
  for (std::size_t cut = 0; cut <= kBytes.size(); ++cut) {
    HeartbeatParser parser;
    parser.feed(kBytes.substr(0, cut));
    parser.feed(kBytes.substr(cut));
    CHECK(parser.heartbeat().step == 456);
    CHECK(parser.heartbeat().work_seconds == 0.25);
    CHECK(parser.heartbeat().beats >= 5);
  }
}

TEST_CASE("a line without end costs no memory and is no step") {
  HeartbeatParser parser;
  const std::string zeros(100'000, '0');
  parser.feed("step 1");
  for (int i = 0; i < 100; ++i) parser.feed(zeros);
  parser.feed("\nstep 2\n");
  CHECK(parser.heartbeat().step == 2);
}
