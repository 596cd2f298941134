#include "collective/cpu/reduce_kernels.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "collective/cpu/half.h"

namespace fleetrun::collective {
namespace {

constexpr Operation kAll[] = {Operation::sum, Operation::prod,    Operation::min,    Operation::max,
                              Operation::avg, Operation::bit_and, Operation::bit_or, Operation::bit_xor};

/// One bfloat16, converted the slow way.
struct SlowBFloat16 {
  std::uint16_t bits = 0;
  SlowBFloat16() = default;
  explicit SlowBFloat16(float value) {
    std::uint32_t all = 0;
    std::memcpy(&all, &value, 4);
    if (std::isnan(value)) {
      bits = static_cast<std::uint16_t>(all >> 16 | 0x40);
      return;
    }
    bits = static_cast<std::uint16_t>(all >> 16);
    const std::uint32_t rest = all & 0xffff;
    if (rest > 0x8000 || (rest == 0x8000 && (bits & 1) != 0)) ++bits;
  }
  explicit operator float() const {
    const std::uint32_t all = static_cast<std::uint32_t>(bits) << 16;
    float value = 0;
    std::memcpy(&value, &all, 4);
    return value;
  }
};

/// One element at a time; in what collective/base/call.h says.
template <class Kept, class Number>
Kept expected(Operation operation, const std::vector<std::vector<Kept>>& inputs, std::size_t i) {
  Number result = static_cast<Number>(inputs[0][i]);
  for (std::size_t k = 1; k < inputs.size(); ++k) {
    const Number next = static_cast<Number>(inputs[k][i]);
    if (operation == Operation::min || operation == Operation::max) {
      if (std::isnan(static_cast<double>(result))) continue;
      const bool takes = operation == Operation::min ? next < result : next > result;
      if (takes || std::isnan(static_cast<double>(next))) result = next;
    } else if constexpr (std::is_integral_v<Number>) {
      using Bits = std::make_unsigned_t<Number>;
      const std::uint64_t a = static_cast<Bits>(result), b = static_cast<Bits>(next);
      const std::uint64_t whole = operation == Operation::prod      ? a * b
                                  : operation == Operation::bit_and ? a & b
                                  : operation == Operation::bit_or  ? a | b
                                  : operation == Operation::bit_xor ? a ^ b
                                                                    : a + b;
      result = static_cast<Number>(whole);
    } else {
      result = operation == Operation::prod ? result * next : result + next;
    }
  }
  if (operation == Operation::avg) result = static_cast<Number>(result / static_cast<Number>(inputs.size()));
  return static_cast<Kept>(result);
}

template <class Kept>
std::vector<Kept> random_values(std::mt19937& random, std::size_t count) {
  std::vector<Kept> values;
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<Kept>)
      values.push_back(static_cast<Kept>(random() * 0x100000001ull));
    else
      values.push_back(static_cast<Kept>(
          std::ldexp(static_cast<float>(random()) / 0x1p31f - 1.0f, int(random() % 20) - 10)));
  }
  return values;
}

/// All elements right, and nothing written beside them; also in place.
template <class Kept, class Number>
bool all_right(DataType type, Operation operation, Vectors vectors, std::size_t ranks, std::size_t count,
               std::size_t shift) {
  std::mt19937 random(static_cast<unsigned>(count * 31 + ranks));
  std::vector<std::vector<Kept>> inputs;
  std::vector<std::vector<std::byte>> shifted;
  std::vector<const void*> pointers;
  for (std::size_t k = 0; k < ranks; ++k) {
    inputs.push_back(random_values<Kept>(random, count));
    shifted.emplace_back(count * sizeof(Kept) + shift + 64);
    if (count > 0) std::memcpy(shifted[k].data() + shift, inputs[k].data(), count * sizeof(Kept));
  }
  for (auto& bytes : shifted) pointers.push_back(bytes.data() + shift);
  std::vector<std::byte> output(count * sizeof(Kept) + shift + 64, std::byte{0x5a});
  const Reduction reduction{type, operation, static_cast<int>(ranks)};
  reduce(reduction, output.data() + shift, pointers, count, vectors);
  const std::size_t last = ranks - 1;
  reduce(reduction, shifted[last].data() + shift, pointers, count, vectors);
  for (std::size_t i = 0; i < count; ++i) {
    const Kept wanted = expected<Kept, Number>(operation, inputs, i);
    if (std::memcmp(output.data() + shift + i * sizeof(Kept), &wanted, sizeof(Kept)) != 0) return false;
  }
  if (count > 0 &&
      std::memcmp(output.data() + shift, shifted[last].data() + shift, count * sizeof(Kept)) != 0)
    return false;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const bool inside = i >= shift && i < shift + count * sizeof(Kept);
    if (!inside && output[i] != std::byte{0x5a}) return false;
  }
  return true;
}

template <class Kept, class Number>
std::string first_wrong(DataType type) {
  for (const Operation operation : kAll) {
    if (is_of_bits(operation) && !std::is_integral_v<Kept>) continue;
    for (int vectors = 0; vectors <= static_cast<int>(best_vectors()); ++vectors) {
      for (const std::size_t ranks : {1, 2, 3, 5}) {
        for (const std::size_t count : {0, 1, 7, 15, 64, 100, 511, 1037}) {
          for (const std::size_t shift : {0, 1, 3}) {
            if (!all_right<Kept, Number>(type, operation, static_cast<Vectors>(vectors), ranks, count, shift))
              return std::string(to_string(operation)) + ", kind " + std::to_string(vectors) + ", " +
                     std::to_string(ranks) + " inputs of " + std::to_string(count) + ", shifted " +
                     std::to_string(shift);
          }
        }
      }
    }
  }
  return "";
}

TEST_CASE("every type and operation gives what one element at a time gives, at any alignment and in place") {
  CHECK(first_wrong<float, float>(DataType::float32) == "");
  CHECK(first_wrong<double, double>(DataType::float64) == "");
  CHECK(first_wrong<_Float16, float>(DataType::float16) == "");
  CHECK(first_wrong<SlowBFloat16, float>(DataType::bfloat16) == "");
  CHECK(first_wrong<std::int8_t, std::int8_t>(DataType::int8) == "");
  CHECK(first_wrong<std::int16_t, std::int16_t>(DataType::int16) == "");
  CHECK(first_wrong<std::int32_t, std::int32_t>(DataType::int32) == "");
  CHECK(first_wrong<std::int64_t, std::int64_t>(DataType::int64) == "");
  CHECK(first_wrong<std::uint8_t, std::uint8_t>(DataType::uint8) == "");
}

TEST_CASE("integers wrap around, and their mean is rounded towards zero") {
  const std::int8_t a[] = {127, -128, -7, 100}, b[] = {1, -1, 0, 100};
  const void* inputs[] = {a, b};
  std::int8_t out[4] = {};
  reduce({DataType::int8, Operation::sum, 2}, out, inputs, 4);
  CHECK(out[0] == -128);
  CHECK(out[1] == 127);
  reduce({DataType::int8, Operation::avg, 2}, out, inputs, 4);
  CHECK(out[2] == -3);
  CHECK(out[3] == -28);
  const std::int16_t c[] = {-32768}, d[] = {-32768};
  const void* squares[] = {c, d};
  std::int16_t product[1] = {1};
  reduce({DataType::int16, Operation::prod, 2}, product, squares, 1);
  CHECK(product[0] == 0);
}

TEST_CASE("min and max of a NaN and a number are a NaN, whichever comes first") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float a[] = {nan, 1, nan, 2}, b[] = {1, nan, nan, 3};
  const void* inputs[] = {a, b};
  for (const Operation operation : {Operation::min, Operation::max}) {
    float out[4] = {};
    reduce({DataType::float32, operation, 2}, out, inputs, 4);
    CHECK(std::isnan(out[0]));
    CHECK(std::isnan(out[1]));
    CHECK(std::isnan(out[2]));
    CHECK(out[3] == (operation == Operation::min ? 2.0f : 3.0f));
  }
}

TEST_CASE("three float16 are summed in float32 and rounded once") {
  // One after the other in float16 gives 2048: 2048 + 1 is a tie.
  const _Float16 a[] = {2048}, b[] = {1}, c[] = {1};
  const void* inputs[] = {a, b, c};
  _Float16 out[1] = {0};
  reduce({DataType::float16, Operation::sum, 3}, out, inputs, 1);
  CHECK(static_cast<float>(out[0]) == 2050.0f);
}

TEST_CASE("all float16 become the float32 that the compiler makes of them, and come back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    _Float16 value;
    std::memcpy(&value, &half, 2);
    const float wanted = static_cast<float>(value), got = from_float16(half);
    if (std::isnan(wanted)) {
      REQUIRE(std::isnan(got));
      REQUIRE(std::isnan(from_float16(to_float16(got))));
    } else {
      REQUIRE(std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(wanted));
      REQUIRE(to_float16(got) == half);
    }
  }
}

TEST_CASE("float32 is rounded to float16 and bfloat16 as the compiler, or the definition, does it") {
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) {
      REQUIRE(std::isnan(from_float16(to_float16(value))));
      REQUIRE(std::isnan(from_bfloat16(to_bfloat16(value))));
      continue;
    }
    const _Float16 wanted = static_cast<_Float16>(value);
    std::uint16_t bits = 0;
    std::memcpy(&bits, &wanted, 2);
    REQUIRE(to_float16(value) == bits);
    REQUIRE(to_bfloat16(value) == SlowBFloat16(value).bits);
  }
  CHECK(to_float16(65519.0f) == 0x7bff);
  CHECK(to_float16(65520.0f) == 0x7c00);
  CHECK(to_float16(0x1p-24f) == 1);
  CHECK(to_float16(0x1p-25f) == 0);
}

}  // namespace
}  // namespace fleetrun::collective
