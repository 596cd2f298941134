#include "launcher/run/member_link.h"

#include <doctest/doctest.h>

namespace fleetrun::launcher {

TEST_CASE("what a process says of its place") {
  const auto waits = parse_member_line("{\"waits\":true}\n", 3);
  REQUIRE(waits);
  CHECK(waits->index == 3);
  CHECK(waits->what == MemberSaid::What::waits);
  const auto leaves = parse_member_line(R"({"leaves":2,"step":17})", 1);
  REQUIRE(leaves);
  CHECK(leaves->what == MemberSaid::What::leaves);
  CHECK(leaves->generation == 2);
  CHECK(leaves->step == 17);
  CHECK(parse_member_line(R"({"trains":true})", 1)->what == MemberSaid::What::trains);
  for (const char* line : {"", "17", "[]", "{", "{}", R"({"leaves":2})", R"({"leaves":"2","step":1})",
                           R"({"leaves":2,"step":1.5})"})
    CHECK_FALSE(parse_member_line(line, 1));
}

}  // namespace fleetrun::launcher
