#include "launcher/run/hang_report.h"

#include <doctest/doctest.h>

using namespace fleetrun::launcher;
using namespace std::chrono_literals;

namespace {

const std::vector<std::string> kNames = {"server 0", "trainer 0", "trainer 1", "trainer 2"};

Silence silence(std::size_t index, std::optional<std::int64_t> step = {}, bool stopped = false) {
  return {
      .index = index, .lasted = 30s, .why = "sent no heartbeat for 30 s", .step = step, .stopped = stopped};
}

ProcessStacks trainer(std::size_t index, const char* function) {
  ProcessStacks stacks;
  stacks.index = index;
  stacks.role = "trainer";
  stacks.rank = static_cast<int>(index) - 1;
  stacks.source = "gdb";
  stacks.threads = {{"main", {{function, "train.c:1", false}}}};
  return stacks;
}

const std::vector<ProcessStacks> kOneApart = {trainer(1, "wait"), trainer(2, "load"), trainer(3, "wait")};
const std::vector<ProcessStacks> kTogether = {trainer(1, "wait"), trainer(2, "wait"), trainer(3, "wait")};

}  // namespace

TEST_CASE("who is not where the others are is at fault, and the report says it in this order") {
  const HangReport report = make_hang_report({silence(1), silence(3), silence(2)}, kOneApart, kNames);
  CHECK(report.culprits == std::vector<std::size_t>{2});
  CHECK(report.silent == std::vector<std::size_t>{2, 1, 3});
  CHECK(report.why == "sent no heartbeat for 30 s");
  CHECK(report.text ==
        "trainer 1 sent no heartbeat for 30 s\n"
        "silent too, perhaps because of it: trainer 0, trainer 2\n"
        "2 trainers (0,2):\n"
        "    wait (train.c:1)\n"
        "trainer 1, not where the others are:\n"
        "    load (train.c:1)\n");
}

TEST_CASE("the odd one is not at fault when it is not silent") {
  const HangReport report = make_hang_report({silence(1), silence(3)}, kOneApart, kNames);
  CHECK(report.culprits == std::vector<std::size_t>{1});
}

TEST_CASE("who was stopped comes before all else") {
  const HangReport report = make_hang_report(
      {silence(1), silence(2), silence(3, {}, true), silence(0, {}, true)}, kOneApart, kNames);
  CHECK(report.culprits == std::vector<std::size_t>{3, 0});
}

TEST_CASE("among equal stacks the one that is behind, else the one that was silent first") {
  CHECK(make_hang_report({silence(1, 9), silence(2, 7), silence(3, 8)}, kTogether, kNames).culprits ==
        std::vector<std::size_t>{2});
  CHECK(make_hang_report({silence(1, 9), silence(2, 7), silence(3, 7)}, kTogether, kNames).culprits ==
        std::vector<std::size_t>{1});
  CHECK(make_hang_report({silence(3), silence(2, 7)}, kTogether, kNames).culprits ==
        std::vector<std::size_t>{3});
  CHECK(make_hang_report({silence(3)}, {}, kNames).text == "trainer 2 sent no heartbeat for 30 s\n");
}

TEST_CASE("the report is JSON too") {
  const HangReport report = make_hang_report({silence(2, 7)}, {}, kNames);
  CHECK(
      report.json ==
      R"({"culprits":[2],"silent":[{"index":2,"seconds":30.0,"step":7,"why":"sent no heartbeat for 30 s"}],)"
      R"("stacks":{"groups":[],"notes":[],"odd":[]}})");
}
