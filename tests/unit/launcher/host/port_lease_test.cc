#include "launcher/host/port_lease.h"

#include <doctest/doctest.h>

using namespace fleetrun::launcher;

TEST_CASE("the kernel's port range is read as it writes it, and nothing else is") {
  CHECK(parse_port_range("32768\t60999\n") == std::pair(32768, 60999));
  CHECK(parse_port_range("1024\t65535") == std::pair(1024, 65535));
  for (const char* text : {"", "32768", "60999\t32768\n", "a\tb\n", "0\t10\n", "1\t65536\n"})
    CHECK_FALSE(parse_port_range(text));
}
