#include "runtime/base/mix.h"

#include <doctest/doctest.h>
#include <bit>

using fleetrun::mix;

TEST_CASE("mix changes about half of the bits when one bit of its input changes") {
  for (int bit = 0; bit < 64; ++bit) {
    int changed = 0;
    for (std::uint64_t word = 1; word <= 1000; ++word) {
      changed += std::popcount(mix(word) ^ mix(word ^ (std::uint64_t{1} << bit)));
    }
    CHECK(changed > 31 * 1000);
    CHECK(changed < 33 * 1000);
  }
}
