#include "runtime/base/hex.h"

#include <doctest/doctest.h>

namespace fleetrun {

TEST_CASE("hexadecimal digits and back") {
  CHECK(hex(std::string("\x00\x7f\xff\x1a", 4)) == "007fff1a");
  CHECK(hex("") == "");
  CHECK(from_hex("007fff1a") == std::string("\x00\x7f\xff\x1a", 4));
  CHECK(from_hex("") == "");
}

TEST_CASE("what is not lower-case hexadecimal is not read") {
  for (const char* text : {"0", "0g", "0A", " 00", "0x"}) CHECK_FALSE(from_hex(text));
}

}  // namespace fleetrun
