// Every (key, column) has a SplitMix64 stream of its own, seeded by the mixed seed, name, key and column.
// Normal values are made by Box and Muller's transform; a truncated one takes the next pair of its stream
// until the value lies within two standard deviations (95.4 % of first tries do).
#include "ps/table/initializer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/base/mix.h"

namespace fleetrun::ps {
namespace {

class Stream {
 public:
  explicit Stream(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept { return mix(state_ += kGoldenGamma); }

 private:
  std::uint64_t state_;
};

// In [0, 1), with 53 random bits.
double unit(std::uint64_t word) noexcept {
  return static_cast<double>(word >> 11) * 0x1p-53;
}

double standard_normal(Stream& stream) noexcept {
  const double radius = std::sqrt(-2.0 * std::log1p(-unit(stream.next())));
  return radius * std::cos(2.0 * std::numbers::pi * unit(stream.next()));
}

double truncated_normal(Stream& stream) noexcept {
  for (;;) {
    const double value = standard_normal(stream);
    if (std::abs(value) <= 2.0) return value;
  }
}

std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = text.size();
  for (const char c : text) hash = mix(hash + kGoldenGamma + static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

RowInitializer::RowInitializer(const Initializer& initializer, std::string_view table_name) noexcept
    : initializer_(initializer), base_(split_mix(initializer.seed) ^ hash_of(table_name)) {}

void RowInitializer::fill(std::uint64_t key, std::span<float> values, std::size_t first) const noexcept {
  const double a = initializer_.a;
  const double b = initializer_.b;
  if (initializer_.kind == Initializer::Kind::constant) {
    std::ranges::fill(values.subspan(first), static_cast<float>(a));
    return;
  }
  const std::uint64_t row = mix(base_ + split_mix(key));
  for (std::size_t column = first; column < values.size(); ++column) {
    Stream stream(mix(row + column * kGoldenGamma));
    switch (initializer_.kind) {
      case Initializer::Kind::constant:
        break;
      case Initializer::Kind::uniform:
        values[column] = static_cast<float>(a + (b - a) * unit(stream.next()));
        break;
      case Initializer::Kind::normal:
        values[column] = static_cast<float>(a + b * standard_normal(stream));
        break;
      case Initializer::Kind::truncated_normal:
        values[column] = static_cast<float>(a + b * truncated_normal(stream));
        break;
    }
  }
}

}  // namespace fleetrun::ps
