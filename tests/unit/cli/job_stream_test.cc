#include "cli/job_stream.h"

#include <doctest/doctest.h>

using namespace fleetrun::cli;

TEST_CASE("events are told from answers and from noise") {
  const auto ended =
      parse_streamed(R"({"event":{"type":"job_ended","exit_status":3},"level":"INFO","text":"over"})");
  REQUIRE(ended);
  CHECK(ended->type == "job_ended");
  CHECK(ended->level == "INFO");
  CHECK(ended->text == "over");
  CHECK(ended->exit_status == 3);
  const auto warning = parse_streamed(R"({"event":{"type":"warning"}})");
  REQUIRE(warning);
  CHECK(warning->text.empty());
  CHECK(!warning->exit_status);
  for (const char* line : {R"({"ok":true,"status":{}})", "", "[]", "{", R"({"event":3})"})
    CHECK(!parse_streamed(line));
}
