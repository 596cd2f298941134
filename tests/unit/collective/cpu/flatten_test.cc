#include "collective/cpu/flatten.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "collective/cpu/convert.h"
#include "collective/cpu/half.h"
#include "tests/support/errors.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using fleetrun::tests::error_of;

namespace {

constexpr DataType kFloats[] = {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16};

double read(DataType type, const std::byte* bytes, std::size_t i) {
  const std::byte* at = bytes + i * size_of(type);
  const auto as = [&]<class Value>(Value value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (type) {
    case DataType::float64:
      return as(double{});
    case DataType::float16:
      return from_float16(as(std::uint16_t{}));
    case DataType::bfloat16:
      return from_bfloat16(as(std::uint16_t{}));
    default:
      return as(float{});
  }
}

void write(DataType type, std::byte* bytes, std::size_t i, std::uint64_t bits) {
  std::memcpy(bytes + i * size_of(type), &bits, size_of(type));  // the lower ones
}

std::uint64_t bits_of(DataType type, const std::byte* bytes, std::size_t i) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes + i * size_of(type), size_of(type));
  return bits;
}

/// The finite numbers of a 16-bit type that are not negative, ascending: their bits are their places.
std::vector<double> numbers_of(DataType type) {
  std::vector<double> numbers;
  for (std::uint16_t bits = 0;; ++bits) {
    const double number = type == DataType::float16 ? from_float16(bits) : from_bfloat16(bits);
    if (!std::isfinite(number)) return numbers;
    numbers.push_back(number);
  }
}

/// The bits of the nearest number of a 16-bit type, by looking for it; of two the even one.
std::uint64_t nearest(const std::vector<double>& numbers, double value) {
  const std::uint64_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::abs(value);
  const std::size_t above =
      static_cast<std::size_t>(std::lower_bound(numbers.begin(), numbers.end(), size) - numbers.begin());
  const std::size_t last = numbers.size() - 1;
  const double next =
      above <= last ? numbers[above] : 2 * numbers[last] - numbers[last - 1];  // what infinity stands for
  if (size > next) return sign | (last + 1);
  if (above == 0) return sign;
  const double down = size - numbers[above - 1], up = next - size;
  return sign | (up < down || (up == down && above % 2 == 0) ? above : above - 1);
}

std::vector<Vectors> all_vectors() {
  std::vector<Vectors> all{Vectors::baseline};
  if (best_vectors() >= Vectors::avx2) all.push_back(Vectors::avx2);
  if (best_vectors() >= Vectors::avx512) all.push_back(Vectors::avx512);
  return all;
}

}  // namespace

TEST_CASE("every float16 and bfloat16 there is survives the way to wider numbers and back") {
  for (const Vectors vectors : all_vectors()) {
    for (const DataType narrow : {DataType::float16, DataType::bfloat16}) {
      for (const DataType wide : {DataType::float32, DataType::float64}) {
        std::vector<std::uint16_t> all(65536), back(65536);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
        std::vector<std::byte> between(all.size() * size_of(wide));
        CHECK_FALSE(convert(narrow, all.data(), wide, between.data(), all.size(), 1, vectors));
        CHECK_FALSE(convert(wide, between.data(), narrow, back.data(), all.size(), 1, vectors));
        int wrong = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
          const double value = read(narrow, reinterpret_cast<const std::byte*>(all.data()), i);
          const double again = read(narrow, reinterpret_cast<const std::byte*>(back.data()), i);
          wrong += std::isnan(value) ? !std::isnan(again) : all[i] != back[i];
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("numbers are rounded once, to the nearest, from float32 and from float64") {
  std::mt19937_64 random(7);
  for (const DataType narrow : {DataType::float16, DataType::bfloat16}) {
    const std::vector<double> numbers = numbers_of(narrow);
    std::vector<double> values;
    std::uniform_int_distribution<std::size_t> place(0, numbers.size() - 2);
    for (int i = 0; i < 20000; ++i) {
      const std::size_t at = place(random);
      const double low = numbers[at], high = numbers[at + 1], middle = (low + high) / 2;
      // Also what is a hair off the middle: rounding to float32 first would take it for the middle.
      values.insert(values.end(),
                    {low, middle, std::nextafter(middle, low), std::nextafter(middle, high), -middle});
    }
    values.insert(values.end(), {1e30, -1e300, 1e-300, 0.0, -0.0, numbers.back() * 1.001});
    std::vector<float> floats(values.begin(), values.end());
    for (const Vectors vectors : all_vectors()) {
      std::vector<std::uint16_t> from_double(values.size()), from_float(values.size());
      convert(DataType::float64, values.data(), narrow, from_double.data(), values.size(), 1, vectors);
      convert(DataType::float32, floats.data(), narrow, from_float.data(), floats.size(), 1, vectors);
      int wrong = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        wrong += from_double[i] != nearest(numbers, values[i]);
        wrong += from_float[i] != nearest(numbers, static_cast<double>(floats[i]));
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE(
    "all pairs of types, sizes and kinds of processors: scaled in the wider type, with the same bits "
    "everywhere") {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform(-100, 100);
  for (const DataType from : kFloats) {
    for (const DataType to : kFloats) {
      for (const std::size_t count : {0u, 1u, 15u, 64u, 1023u, 1025u, 5000u}) {
        // Misaligned by one byte.
        std::vector<std::byte> in(count * size_of(from) + 1), first;
        for (std::size_t i = 0; i < count; ++i) {
          const double value = uniform(random);
          const auto narrow = static_cast<float>(value);
          write(from, in.data() + 1, i,
                from == DataType::float64   ? std::bit_cast<std::uint64_t>(value)
                : from == DataType::float32 ? std::bit_cast<std::uint32_t>(narrow)
                : from == DataType::float16 ? to_float16(narrow)
                                            : to_bfloat16(narrow));
        }
        for (const Vectors vectors : all_vectors()) {
          std::vector<std::byte> out(count * size_of(to) + 1);
          CHECK(convert(from, in.data() + 1, to, out.data() + 1, count, 0.3, vectors));
          if (vectors == Vectors::baseline) first = out;
          CHECK(out == first);
        }
        const bool is_wide = from == DataType::float64 || to == DataType::float64;
        int wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const double value = read(from, in.data() + 1, i);
          const double product =
              is_wide ? value * 0.3 : static_cast<double>(static_cast<float>(value) * 0.3f);
          const double written = read(to, first.data() + 1, i);
          const double places = to == DataType::bfloat16  ? 0x1p-8
                                : to == DataType::float16 ? 0x1p-11
                                                          : 0x1p-24;
          wrong += !(std::abs(written - product) <= std::abs(product) * places + 0x1p-25);
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("one number that is not finite is found wherever it is, and where it overflows on the way") {
  for (const Vectors vectors : all_vectors()) {
    for (const DataType type : kFloats) {
      constexpr std::size_t kCount = 2100;
      std::vector<float> ones(kCount, 1);
      std::vector<std::byte> in(kCount * size_of(type)), out(in.size());
      convert(DataType::float32, ones.data(), type, in.data(), kCount, 1, vectors);
      const auto is_finite = [&] { return convert(type, in.data(), type, out.data(), kCount, 0.5, vectors); };
      CHECK(is_finite());
      for (const std::size_t at : {0u, 1u, 31u, 1023u, 1024u, 2098u, 2099u}) {
        for (const float bad :
             {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
              std::numeric_limits<float>::quiet_NaN()}) {
          const std::uint64_t good = bits_of(type, in.data(), at);
          convert(DataType::float32, &bad, type, in.data() + at * size_of(type), 1, 1, vectors);
          CHECK_FALSE(is_finite());
          write(type, in.data(), at, good);
        }
      }
      CHECK(is_finite());
    }
    const float large = 70000, larger = 3e38f;
    std::uint16_t half = 0;
    float single = 0;
    CHECK_FALSE(convert(DataType::float32, &large, DataType::float16, &half, 1, 1, vectors));
    CHECK(convert(DataType::float32, &large, DataType::float16, &half, 1, 0.5, vectors));
    CHECK_FALSE(convert(DataType::float32, &larger, DataType::float32, &single, 1, 2, vectors));
  }
}

TEST_CASE("tensors go into a bucket behind each other and come back") {
  const std::vector<float> a{1, 2, 3}, c{4, 5};
  const std::vector<ConstBuffer> tensors{
      {a.data(), 3, DataType::float32}, {nullptr, 0, DataType::float32}, {c.data(), 2, DataType::float32}};
  std::vector<std::uint16_t> bucket(5);
  CHECK(flatten(tensors, {bucket.data(), 5, DataType::float16}, 8));
  for (std::size_t i = 0; i < 5; ++i) CHECK(from_float16(bucket[i]) == 8 * static_cast<float>(i + 1));
  std::vector<float> back_a(3), back_c(2);
  const std::vector<Buffer> back{{back_a.data(), 3, DataType::float32},
                                 {nullptr, 0, DataType::float32},
                                 {back_c.data(), 2, DataType::float32}};
  CHECK(unflatten({bucket.data(), 5, DataType::float16}, back, 0.125));
  CHECK(back_a == a);
  CHECK(back_c == c);
}

TEST_CASE("integers are copied as they are") {
  const std::vector<std::int64_t> a{1, -2}, b{1ll << 62};
  std::vector<std::int64_t> bucket(3), back(3);
  const std::vector<ConstBuffer> tensors{{a.data(), 2, DataType::int64}, {b.data(), 1, DataType::int64}};
  CHECK(flatten(tensors, {bucket.data(), 3, DataType::int64}));
  CHECK(bucket == std::vector<std::int64_t>{1, -2, 1ll << 62});
  const std::vector<Buffer> out{{back.data(), 3, DataType::int64}};
  CHECK(unflatten({bucket.data(), 3, DataType::int64}, out));
  CHECK(back == bucket);
}

TEST_CASE("buckets and tensors that do not go together are refused, with both") {
  std::vector<float> values(4);
  const ConstBuffer three{values.data(), 3, DataType::float32}, ints{values.data(), 1, DataType::int32};
  const Buffer four{values.data(), 4, DataType::float32};
  const Error sizes = error_of([&] { flatten(std::vector{three}, four); });
  CHECK(sizes.kind() == ErrorKind::config);
  CHECK(std::string(sizes.what()) == "a bucket of 4 elements for tensors of 3 together");
  const Error types = error_of([&] { flatten(std::vector{three, ints}, four); });
  CHECK(std::string(types.what()) == "a bucket of tensors: tensor 0 is of float32, tensor 1 of int32");
  CHECK(types.hint() == "put tensors of different types into different buckets");
  const Error scaled = error_of([&] { flatten(std::vector{ints}, {values.data(), 1, DataType::int32}, 2); });
  CHECK(std::string(scaled.what()) ==
        "a bucket of tensors: int32 as int32, times 2.000000: only floating-point numbers are converted or "
        "scaled");
  const Error converted = error_of([&] {
    flatten(std::vector{ints}, {values.data(), 1, DataType::float32});
  });
  CHECK(converted.kind() == ErrorKind::config);
}
