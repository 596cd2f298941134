#include "collective/cpu/flatten.h"

#include <cstring>
#include <string>
#include <vector>

#include "collective/cpu/convert.h"

namespace fleetrun::collective {
namespace {

bool is_copy(DataType from, DataType to, double scale) {
  return !is_floating(from) && from == to && scale == 1;
}

Vectors vectors() {
  static const Vectors best = best_vectors();
  return best;
}

}  // namespace

bool is_floating(DataType type) noexcept {
  return type == DataType::float32 || type == DataType::float64 || type == DataType::float16 ||
         type == DataType::bfloat16;
}

void check_flatten(std::span<const ConstBuffer> tensors, ConstBuffer bucket, double scale) {
  std::size_t elements = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    elements += tensors[i].count;
    if (tensors[i].type == tensors[0].type) continue;
    throw Error(ErrorKind::config,
                "a bucket of tensors: tensor 0 is of " + std::string(to_string(tensors[0].type)) +
                    ", tensor " + std::to_string(i) + " of " + std::string(to_string(tensors[i].type)),
                "put tensors of different types into different buckets");
  }
  if (elements != bucket.count) {
    throw Error(ErrorKind::config, "a bucket of " + std::to_string(bucket.count) +
                                       " elements for tensors of " + std::to_string(elements) + " together");
  }
  if (tensors.empty() || is_copy(tensors[0].type, bucket.type, scale)) return;
  if (is_floating(tensors[0].type) && is_floating(bucket.type)) return;
  throw Error(ErrorKind::config, "a bucket of tensors: " + std::string(to_string(tensors[0].type)) + " as " +
                                     std::string(to_string(bucket.type)) + ", times " +
                                     std::to_string(scale) +
                                     ": only floating-point numbers are converted or scaled");
}

bool flatten(std::span<const ConstBuffer> tensors, Buffer bucket, double scale) {
  check_flatten(tensors, {bucket.data, bucket.count, bucket.type}, scale);
  bool is_finite = true;
  auto* to = static_cast<std::byte*>(bucket.data);
  for (const ConstBuffer& tensor : tensors) {
    const std::size_t bytes = tensor.count * size_of(bucket.type);
    if (is_copy(tensor.type, bucket.type, scale)) {
      if (bytes > 0) std::memcpy(to, tensor.data, bytes);
    } else {
      is_finite &= convert(tensor.type, tensor.data, bucket.type, to, tensor.count, scale, vectors());
    }
    to += bytes;
  }
  return is_finite;
}

bool unflatten(ConstBuffer bucket, std::span<const Buffer> tensors, double scale) {
  std::vector<ConstBuffer> shapes;
  for (const Buffer& tensor : tensors) shapes.push_back({tensor.data, tensor.count, tensor.type});
  check_flatten(shapes, bucket, scale);
  bool is_finite = true;
  const auto* from = static_cast<const std::byte*>(bucket.data);
  for (const Buffer& tensor : tensors) {
    const std::size_t bytes = tensor.count * size_of(bucket.type);
    if (is_copy(bucket.type, tensor.type, scale)) {
      if (bytes > 0) std::memcpy(tensor.data, from, bytes);
    } else {
      is_finite &= convert(bucket.type, from, tensor.type, tensor.data, tensor.count, scale, vectors());
    }
    from += bytes;
  }
  return is_finite;
}

}  // namespace fleetrun::collective
