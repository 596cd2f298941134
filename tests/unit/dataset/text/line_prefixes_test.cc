#include "dataset/text/line_prefixes.h"

#include <doctest/doctest.h>

#include <string>

namespace fleetrun::dataset {
namespace {

TEST_CASE("the fields of a log key are where Paddle's jobs write them") {
  LogKey key;
  REQUIRE(
      read_log_key("00000000000"
                   "0f1"
                   "02"
                   "00000000000000ab",
                   key));
  CHECK(key == LogKey{0xab, 0xf1, 2});
  REQUIRE(
      read_log_key("00000000000"
                   "FFF"
                   "fF"
                   "FFFFFFFFFFFFFFFF"
                   "anything after",
                   key));
  CHECK(key == LogKey{UINT64_MAX, 0xfff, 0xff});
}

TEST_CASE("fewer than 32 digits, or other bytes, are no log key and change nothing") {
  LogKey key{1, 2, 3};
  const std::string digits(32, '0');
  CHECK_FALSE(read_log_key("", key));
  CHECK_FALSE(read_log_key(digits.substr(1), key));
  for (const std::size_t place : {0, 11, 14, 16, 31}) {
    std::string bad = digits;
    bad[place] = 'g';
    CHECK_FALSE(read_log_key(bad, key));
    bad[place] = '-';
    CHECK_FALSE(read_log_key(bad, key));
  }
  CHECK(key == LogKey{1, 2, 3});
}

}  // namespace
}  // namespace fleetrun::dataset
