// Loops without branches, which the compiler vectorises.
#include "ps/base/encoding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

constexpr std::array<std::string_view, kEncodingCount> kNames = {"float32", "fp16", "bf16", "int8"};

constexpr std::uint32_t kLargestHalf = 0x477fe000;   // 65504 as float32
constexpr float kLargestScale = 2.679e36f;           // 127 times it is finite
constexpr std::uint32_t kSmallestHalf = 0x38800000;  // 2^-14, below which halves are subnormal

std::uint16_t to_half(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t size = std::min(bits & 0x7fffffffu, kLargestHalf);
  // To the nearest, to even where two are: in the bits for normal numbers, by an addition for subnormal ones.
  const std::uint32_t normal = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  return static_cast<std::uint16_t>((size >= kSmallestHalf ? normal : subnormal) | ((bits >> 16) & 0x8000u));
}

float from_half(std::uint16_t half) noexcept {
  const std::uint32_t size = (half & 0x7fffu) << 13;
  const float value = std::bit_cast<float>(size) * std::bit_cast<float>(0x77800000u);  // 2^112
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) |
                              (static_cast<std::uint32_t>(half & 0x8000u) << 16));
}

// To the nearest; what would become infinite stays the largest.
std::uint16_t to_bfloat(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t size = std::min(bits & 0x7fffffffu, 0x7f7f0000u);
  const std::uint32_t rounded = (size + 0x7fffu + ((size >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>(rounded | ((bits >> 16) & 0x8000u));
}

float from_bfloat(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

template <class To>
void encode_words(std::span<const float> values, std::byte* out, To to) noexcept {
  auto* words = reinterpret_cast<std::uint16_t*>(out);
  for (std::size_t i = 0; i < values.size(); ++i) words[i] = to(values[i]);
}

template <class From>
void decode_words(const std::byte* in, std::span<float> values, From from) noexcept {
  const auto* words = reinterpret_cast<const std::uint16_t*>(in);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from(words[i]);
}

std::size_t rows_of(std::size_t count, std::size_t width) noexcept {
  return width == 0 ? 0 : (count + width - 1) / width;
}

void encode_bytes(std::span<const float> values, std::size_t width, std::byte* out) noexcept {
  const std::size_t rows = rows_of(values.size(), width);
  auto* scales = reinterpret_cast<float*>(out);
  auto* bytes = reinterpret_cast<std::int8_t*>(scales + rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto part = values.subspan(row * width, std::min(width, values.size() - row * width));
    float largest = 0;
    for (const float value : part) largest = std::max(largest, std::fabs(value));
    scales[row] = std::min(largest / 127.0f, kLargestScale);
    const float factor = scales[row] > 0 ? 1.0f / scales[row] : 0.0f;
    // The scale of the tiniest rows has no inverse: they travel as zeros.
    const float finite = factor <= 3.4e38f ? factor : 0.0f;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const float scaled = part[i] * finite;
      const int rounded = static_cast<int>(scaled + (scaled < 0 ? -0.5f : 0.5f));
      bytes[row * width + i] = static_cast<std::int8_t>(std::clamp(rounded, -127, 127));
    }
  }
}

void decode_bytes(const std::byte* in, std::size_t width, std::span<float> values) noexcept {
  const std::size_t rows = rows_of(values.size(), width);
  const auto* scales = reinterpret_cast<const float*>(in);
  const auto* bytes = reinterpret_cast<const std::int8_t*>(scales + rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto part = values.subspan(row * width, std::min(width, values.size() - row * width));
    for (std::size_t i = 0; i < part.size(); ++i)
      part[i] = scales[row] * static_cast<float>(bytes[row * width + i]);
  }
}

}  // namespace

std::string_view to_string(Encoding encoding) noexcept {
  const auto index = static_cast<std::size_t>(encoding);
  return index < kNames.size() ? kNames[index] : "an unknown encoding";
}

Encoding encoding_of(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return static_cast<Encoding>(found - kNames.begin());
  throw Error(ErrorKind::config, "'" + std::string(name) + "' is not an encoding of rows and gradients",
              "set it to float32, fp16, bf16 or int8");
}

Encodings encodings_of(const Environ& environ) {
  return {encoding_of(environ.value_or("FLEETRUN_PS_GRADIENTS", "float32")),
          encoding_of(environ.value_or("FLEETRUN_PS_ROWS", "float32"))};
}

std::size_t encoded_bytes(Encoding encoding, std::size_t count, std::size_t width) noexcept {
  if (encoding == Encoding::float32) return count * sizeof(float);
  const std::size_t bytes = encoding == Encoding::int8 ? rows_of(count, width) * sizeof(float) + count
                                                       : count * sizeof(std::uint16_t);
  return (bytes + 7) / 8 * 8;
}

void encode(Encoding encoding, std::span<const float> values, std::size_t width, std::byte* out) noexcept {
  switch (encoding) {
    case Encoding::float16:
      return encode_words(values, out, to_half);
    case Encoding::bfloat16:
      return encode_words(values, out, to_bfloat);
    case Encoding::int8:
      return encode_bytes(values, width, out);
    default:
      if (!values.empty()) std::memcpy(out, values.data(), values.size_bytes());
  }
}

void decode(Encoding encoding, const std::byte* in, std::size_t width, std::span<float> values) noexcept {
  switch (encoding) {
    case Encoding::float16:
      return decode_words(in, values, from_half);
    case Encoding::bfloat16:
      return decode_words(in, values, from_bfloat);
    case Encoding::int8:
      return decode_bytes(in, width, values);
    default:
      if (!values.empty()) std::memcpy(values.data(), in, values.size_bytes());
  }
}

}  // namespace fleetrun::ps
