#include "ps/base/memory_amount.h"

#include <doctest/doctest.h>

using fleetrun::ps::parse_bytes;

TEST_CASE("an amount of memory is bytes or a number with a unit") {
  CHECK(parse_bytes("65536") == 65536);
  CHECK(parse_bytes("2K") == 2048);
  CHECK(parse_bytes("1.5G") == (std::uint64_t{3} << 29));
  CHECK(parse_bytes("3T") == (std::uint64_t{3} << 40));
  CHECK(parse_bytes("0") == 0);
  for (const char* text :
       {"", "G", "-1", "-1G", "1.-5G", "1e3", "0.1", "1GB", "1 G", ".5G", "5.G", "9000000T"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_bytes(text).has_value());
  }
}
