// How rows and gradients travel: as 32-bit floats, or shorter and less exactly.
//
//   float16, bfloat16   the nearest; what is too large for float16 becomes its largest
//   int8                each row as numbers from -127 to 127, and their scale before all of them:
//                       f32[rows] | i8[values]
//
// What is shorter than 32 bits is filled up to a multiple of 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fleetrun {
class Environ;
}

namespace fleetrun::ps {

enum class Encoding : std::uint8_t { float32, float16, bfloat16, int8 };
inline constexpr std::size_t kEncodingCount = 4;

/// "float32", "fp16", "bf16", "int8".
std::string_view to_string(Encoding encoding) noexcept;
/// Throws: Error(config) for another name.
Encoding encoding_of(std::string_view name);

/// Dense values have no rows; so many of them share a scale.
inline constexpr std::size_t kDenseRow = 256;

/// Bytes of `count` values in rows of `width`, of which the last may be shorter.
std::size_t encoded_bytes(Encoding encoding, std::size_t count, std::size_t width) noexcept;
/// `out` has encoded_bytes(), aligned for floats. Values are finite.
void encode(Encoding encoding, std::span<const float> values, std::size_t width, std::byte* out) noexcept;
void decode(Encoding encoding, const std::byte* in, std::size_t width, std::span<float> values) noexcept;

/// What a client asks for, by FLEETRUN_PS_GRADIENTS and FLEETRUN_PS_ROWS.
struct Encodings {
  Encoding gradients = Encoding::float32;
  Encoding rows = Encoding::float32;
};
/// Throws: Error(config).
Encodings encodings_of(const Environ& environ);

}  // namespace fleetrun::ps
