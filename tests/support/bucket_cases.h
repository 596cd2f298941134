// Buckets of tensors of awkward sizes and addresses: the same for the fake and for real GPUs, checked against
// collective/cpu/flatten.
#pragma once

#include <random>
#include <vector>

#include "collective/cpu/flatten.h"

namespace fleetrun::tests {

/// Many tensors of random sizes, among them 0, 1 and larger than a block's piece, at elements' own alignment.
inline std::vector<std::size_t> bucket_sizes(std::mt19937_64& random) {
  std::vector<std::size_t> sizes{0, 1, 3, 8191, 8192, 8193, 40000};
  for (int i = 0; i < 300; ++i) sizes.push_back(random() % 300);
  return sizes;
}

/// Values of all magnitudes whose product with small scales is finite in every type.
inline std::vector<std::byte> bucket_values(collective::DataType type, std::size_t count,
                                            std::mt19937_64& random) {
  std::vector<float> values(count);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(random) * (random() % 8 == 0 ? 1e-6f : 100.f);
  std::vector<std::byte> bytes(count * collective::size_of(type));
  const collective::ConstBuffer from{values.data(), count, collective::DataType::float32};
  collective::flatten({&from, 1}, {bytes.data(), count, type});
  return bytes;
}

/// `tensors` laid out in one piece of memory, with a gap before each so that many are not aligned.
struct LaidOut {
  std::vector<std::size_t> offsets;  // bytes
  std::size_t bytes = 0;
};
inline LaidOut lay_out(const std::vector<std::size_t>& sizes, std::size_t element) {
  LaidOut laid;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    laid.bytes += element * (i % 3);
    laid.offsets.push_back(laid.bytes);
    laid.bytes += sizes[i] * element;
  }
  return laid;
}

}  // namespace fleetrun::tests
