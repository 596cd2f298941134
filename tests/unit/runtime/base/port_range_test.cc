#include "runtime/base/port_range.h"

#include <doctest/doctest.h>

using namespace fleetrun;

TEST_CASE("two ports are a range where the lower one comes first, and nothing else is") {
  CHECK(parse_ports("32768\t60999", '\t') == std::pair(32768, 60999));
  CHECK(parse_ports("1:65535", ':') == std::pair(1, 65535));
  CHECK(parse_ports("7:7", ':') == std::pair(7, 7));
  for (const char* text : {"", "32768", "60999:32768", "a:b", "0:10", "1:65536", "1:2:3", "1-2", "1:2\n"})
    CHECK_FALSE(parse_ports(text, ':'));
}
