#include "dataset/text/number_text.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <string>

namespace fleetrun::dataset {
namespace {

std::optional<std::int64_t> id(const std::string& text) {
  std::int64_t value = 0;
  if (read_id(text, value) != NumberFault::none) return std::nullopt;
  return value;
}

std::optional<float> number(const std::string& text) {
  float value = 0;
  if (read_float(text, value) != NumberFault::none) return std::nullopt;
  return value;
}

/// `text` with the separator and the padding that the fast readers need.
std::string padded(const std::string& text) {
  return text + " " + std::string(kTextPadding, '9');
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

TEST_CASE("an id is a whole number of 64 bits, signed or not, kept as its bits") {
  CHECK(id("0") == 0);
  CHECK(id("7") == 7);
  CHECK(id("+7") == 7);
  CHECK(id("007") == 7);
  CHECK(id("-3") == -3);
  CHECK(id("9223372036854775807") == INT64_MAX);
  CHECK(id("9223372036854775808") == INT64_MIN);
  CHECK(id("18446744073709551615") == -1);
  CHECK(id("-9223372036854775808") == INT64_MIN);
  CHECK(id("00000000000000000000000000000005") == 5);
}

TEST_CASE("what does not fit 64 bits is out of range; what is not digits is not an id") {
  std::int64_t value = 42;
  for (const char* text : {"18446744073709551616", "-9223372036854775809", "99999999999999999999999"}) {
    CAPTURE(text);
    CHECK(read_id(text, value) == NumberFault::out_of_range);
  }
  for (const char* text :
       {"", "-", "+", "--1", "+-1", "7.9", "1e3", "0x10", "1_0", "1,5", "abc", "1a", "\xC2\xA0", "inf"}) {
    CAPTURE(text);
    CHECK(read_id(text, value) == NumberFault::not_a_number);
  }
  CHECK(value == 42);
}

TEST_CASE("a count is plain digits") {
  std::uint64_t value = 0;
  CHECK(read_count("0012", value) == NumberFault::none);
  CHECK(value == 12);
  for (const char* text : {"", "+1", "-1", "1.0", " 1", "x"}) {
    CAPTURE(text);
    CHECK(read_count(text, value) == NumberFault::not_a_number);
  }
  CHECK(read_count("18446744073709551616", value) == NumberFault::out_of_range);
}

TEST_CASE("floats in every accepted form") {
  CHECK(number("0.5") == 0.5F);
  CHECK(number(".5") == 0.5F);
  CHECK(number("5.") == 5.0F);
  CHECK(number("+1.5") == 1.5F);
  CHECK(number("-1.5e-3") == -1.5e-3F);
  CHECK(number("1E5") == 1e5F);
  CHECK(number("1e-46") == 0.0F);
  CHECK(number("1e-400") == 0.0F);
  CHECK(number("1e-99999999999999999999") == 0.0F);
  CHECK(number("0e99999999999999999999") == 0.0F);
  CHECK(number("1.4e-45") == std::numeric_limits<float>::denorm_min());
  CHECK(number("3.4028235e38") == std::numeric_limits<float>::max());
  CHECK(number("inf") == std::numeric_limits<float>::infinity());
  CHECK(number("-INFINITY") == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(number("NaN").value()));
  CHECK(std::isnan(number("nan(0x7_F)").value()));
  CHECK(same_bits(number("-0").value(), -0.0F));
  CHECK(number("0x10") == 16.0F);
  CHECK(number("-0X1.8p3") == -12.0F);
  CHECK(number("0x.8P-2") == 0.125F);
  CHECK(number("0xffffff8") == 268435456.0F);
  CHECK(number("0x1p-149") == std::numeric_limits<float>::denorm_min());
  CHECK(number("0x1p-99999999999999999999") == 0.0F);
  CHECK(number("0x0p99999999999999999999") == 0.0F);
  CHECK(number("0x1.fffffep127") == std::numeric_limits<float>::max());
}

// Up to 52 bits, which strtod() reads exactly: glibc 2.36's strtof() rounds 0x2cbb15.2p-150 down.
TEST_CASE("hexadecimal floats round to the nearest") {
  std::mt19937_64 random(17);
  for (int i = 0; i < 100000; ++i) {
    char text[64];
    std::snprintf(text, sizeof text, "0x%llx.%llxp%d",
                  static_cast<unsigned long long>(random() >> (36 + random() % 28)),
                  static_cast<unsigned long long>(random() >> (40 + random() % 24)),
                  static_cast<int>(random() % 300) - 170);
    CAPTURE(text);
    const float wanted = static_cast<float>(std::strtod(text, nullptr));
    float value = 0;
    if (std::isinf(wanted)) {
      REQUIRE(read_float(text, value) == NumberFault::out_of_range);
    } else {
      REQUIRE(read_float(text, value) == NumberFault::none);
      REQUIRE(same_bits(value, wanted));
    }
  }
}

TEST_CASE("a float beyond float32 is out of range, other text is not a float") {
  float value = 42;
  for (const char* text : {"1e400", "-1e400", "3.5e38", "1e39", "1e99999999999999999999", "0x1p128",
                           "-0x1p99999999999999999999", "0x1.ffffffp127"}) {
    CAPTURE(text);
    CHECK(read_float(text, value) == NumberFault::out_of_range);
  }
  const std::string many_digits = "1" + std::string(400, '0');
  CHECK(read_float(many_digits, value) == NumberFault::out_of_range);
  CHECK(number("0." + std::string(400, '0') + "1") == 0.0F);
  for (const char* text : {"",     ".",    "-",      "+",    "+-1",  "1e",    "1e+", "e5",  "0x",
                           "0x.",  "0xp1", "0x1p",   "0x-1", "0x+1", "0x0x1", "x10", "1,5", "1_0",
                           "nano", "nan(", "nan(-)", "nan)", "infx", "1.2.3", "1f"}) {
    CAPTURE(text);
    CHECK(read_float(text, value) == NumberFault::not_a_number);
  }
}

TEST_CASE("the fast id reader agrees with the complete one or declines") {
  std::mt19937_64 random(7);
  int taken = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string text = std::to_string(random() >> (random() % 64));
    if (random() % 4 == 0) text.insert(0, 1, '-');
    const std::string bytes = padded(text);
    std::int64_t value = 0;
    const char* end = read_short_id(bytes.data(), value);
    if (!end) continue;
    ++taken;
    REQUIRE(static_cast<std::size_t>(end - bytes.data()) == text.size());
    REQUIRE(id(text) == value);
  }
  CHECK(taken > 100000);
  std::int64_t value = 0;
  for (const char* text : {"", "-", "7.9", "12345678x", "1234567812345678x", "x", "+7"})
    CHECK(read_short_id(padded(text).data(), value) == nullptr);
}

TEST_CASE("the fast float reader rounds as strtof does, or declines") {
  std::mt19937_64 random(11);
  int taken = 0;
  for (int i = 0; i < 300000; ++i) {
    const double magnitude = static_cast<double>(random()) / 1.8446744073709552e19;
    const double scaled = magnitude * std::pow(10.0, static_cast<int>(random() % 9) - 2);
    char text[64];
    std::snprintf(text, sizeof text, "%s%.*f", random() % 3 == 0 ? "-" : "", static_cast<int>(random() % 19),
                  scaled);
    const std::string bytes = padded(text);
    float value = 0;
    const char* end = read_short_float(bytes.data(), value);
    if (!end) continue;
    ++taken;
    CAPTURE(text);
    REQUIRE(static_cast<std::size_t>(end - bytes.data()) == std::strlen(text));
    REQUIRE(same_bits(value, std::strtof(text, nullptr)));
  }
  CHECK(taken > 200000);
}

TEST_CASE("decimals next to the middle between two floats round as strtof rounds") {
  std::mt19937_64 random(13);
  for (int i = 0; i < 20000; ++i) {
    const float low = std::bit_cast<float>(static_cast<std::uint32_t>(0x3C000000 + random() % 0x0C000000));
    const double middle = (static_cast<double>(low) + std::nextafter(low, INFINITY)) / 2;
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(8 + random() % 11), middle);
    CAPTURE(text);
    float value = 0;
    const std::string bytes = padded(text);
    if (!read_short_float(bytes.data(), value)) REQUIRE(read_float(text, value) == NumberFault::none);
    REQUIRE(same_bits(value, std::strtof(text, nullptr)));
  }
}

TEST_CASE("the fast float reader declines what is not short and plain") {
  float value = 0;
  for (const char* text :
       {"", "-", ".", "1e5", "nan", "12345678", "0.12345678901234567890", "1.5x", "16777217", "+1"})
    CHECK(read_short_float(padded(text).data(), value) == nullptr);
}

}  // namespace
}  // namespace fleetrun::dataset
