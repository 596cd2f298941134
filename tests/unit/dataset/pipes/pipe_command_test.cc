#include "dataset/pipes/pipe_command.h"

#include <doctest/doctest.h>

namespace fleetrun::dataset {
namespace {

TEST_CASE("the last lines of nothing are nothing") {
  LastLines lines;
  CHECK(lines.report().empty());
  lines.add("\n\n");
  CHECK(lines.report().empty());
}

TEST_CASE("lines are shown whole, however they arrived, control bytes escaped") {
  LastLines lines;
  lines.add("one\ntw");
  lines.add("o\nbell\a\n");
  CHECK(lines.report() == "; its standard error ends:\n    one\n    two\n    bell\\x07");
}

TEST_CASE("only the last ten lines are kept") {
  LastLines lines;
  for (int i = 0; i < 100000; ++i) lines.add("line " + std::to_string(i) + "\n");
  const std::string report = lines.report();
  CHECK(report.find("line 99989\n") == std::string::npos);
  CHECK(report.find("\n    line 99990\n") != std::string::npos);
  CHECK(report.ends_with("line 99999"));
}

TEST_CASE("one endless line stays bounded") {
  LastLines lines;
  for (int i = 0; i < 1000; ++i) lines.add(std::string(1000, 'x'));
  CHECK(lines.report().size() < 2500);
}

}  // namespace
}  // namespace fleetrun::dataset
