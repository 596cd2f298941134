#include "dataset/text/number_print.h"

#include <doctest/doctest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>

using namespace fleetrun::dataset;

namespace {

template <auto print, class T>
std::string printed(T value) {
  char text[kNumberBytes];
  return {text, print(text, value)};
}

std::string shown(double value) {
  return printed<print_double>(value);
}

}  // namespace

TEST_CASE("whole numbers are their digits") {
  CHECK(printed<print_unsigned>(std::uint64_t{0}) == "0");
  CHECK(printed<print_unsigned>(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(printed<print_signed>(std::int64_t{-1}) == "-1");
  CHECK(printed<print_signed>(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
}

TEST_CASE("whole numbers of every length, and their neighbours") {
  std::uint64_t power = 1;
  for (int digits = 1; digits <= 20; ++digits, power *= 10) {
    for (const std::uint64_t number : {power - 1, power, power + 1, 2 * power, 7 * power + 3})
      CHECK(printed<print_unsigned>(number) == std::to_string(number));
  }
  for (std::uint64_t number = 0; number < 100000000; number += 997)
    REQUIRE(printed<print_unsigned>(number) == std::to_string(number));
}

TEST_CASE("floats are what Python's str() shows") {
  // Each pair as `python3 -c "print(…)"` gives it.
  const std::pair<double, const char*> table[] = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {-2.5, "-2.5"},
      {0.1, "0.1"},
      {1.0 / 3.0, "0.3333333333333333"},
      {0.0001, "0.0001"},
      {0.00012345, "0.00012345"},
      {0.00001, "1e-05"},
      {0.000012345, "1.2345e-05"},
      {123456789012345.0, "123456789012345.0"},
      {1e15, "1000000000000000.0"},
      {1234567890123456.7, "1234567890123456.8"},
      {9999999999999998.0, "9999999999999998.0"},
      {1e16, "1e+16"},
      {1.5e16, "1.5e+16"},
      {1e22, "1e+22"},
      {1e100, "1e+100"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {-2.2250738585072014e-308, "-2.2250738585072014e-308"},
      {15.25, "15.25"},
      {1500.0, "1500.0"},
      {std::numeric_limits<double>::infinity(), "inf"},
      {-std::numeric_limits<double>::infinity(), "-inf"},
      {std::numeric_limits<double>::quiet_NaN(), "nan"},
      {-std::numeric_limits<double>::quiet_NaN(), "nan"},
  };
  for (const auto& [value, text] : table) CHECK(shown(value) == text);
}

TEST_CASE("every double reads back as itself") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const std::string text = shown(value);
    REQUIRE(text.size() <= kNumberBytes);
    double back = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), back);
    REQUIRE(end == text.data() + text.size());
    REQUIRE(std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(value));
  }
}
