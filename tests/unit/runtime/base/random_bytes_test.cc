#include "runtime/base/random_bytes.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>

namespace fleetrun {

TEST_CASE("random bytes are as many as asked for, and others each time") {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(random_bytes(16));
  CHECK(seen.size() == 100);
  CHECK(random_bytes(0).empty());
  CHECK(random_bytes(1000).size() == 1000);
}

TEST_CASE("random numbers differ, and reach the whole width of their type") {
  std::set<std::uint64_t> seen;
  std::uint64_t bits = 0;
  for (int i = 0; i < 100; ++i) {
    const auto number = random_number<std::uint64_t>();
    seen.insert(number);
    bits |= number;
  }
  CHECK(seen.size() == 100);
  CHECK(bits == UINT64_MAX);
}

}  // namespace fleetrun
