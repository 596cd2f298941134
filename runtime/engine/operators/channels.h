// What normalisations and their relatives share: channels of a tensor, and optional parameters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/axes.h"

namespace fleetrun::engine {

/// Of a parameter whose size was not known when the operator was appended. Throws: Error(config).
inline void check_size(const Operator& op, const Tensor* parameter, std::size_t size, const char* what) {
  if (parameter == nullptr || parameter->size() == size) return;
  fail(op, "the " + std::string(what) + " is " + to_string(parameter->shape()) + ", and " +
               std::to_string(size) + " values are needed");
}

inline const float* data_of(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->values<float>().data();
}

/// The tensor with `size` zeros; null for null.
inline float* filled(Tensor* tensor, std::size_t size) {
  if (tensor == nullptr) return nullptr;
  tensor->resize(DataType::float32, {static_cast<std::int64_t>(size)});
  std::fill_n(tensor->values<float>().data(), size, 0.0f);
  return tensor->values<float>().data();
}

/// Checks that an optional parameter has `size` values; -1: whatever.
inline void expect_size(const Inference& inference, std::size_t index, std::int64_t size, const char* what) {
  if (index >= inference.op().inputs.size() || inference.op().inputs[index].empty()) return;
  inference.expect_type(index, DataType::float32);
  const std::int64_t given = count(inference.input(index).shape);
  if (size >= 0 && given >= 0 && given != size) {
    inference.fail("the " + std::string(what) + " '" + inference.op().inputs[index] + "' has not " +
                   std::to_string(size) + " values");
  }
}

/// X as [outer, channels, inner].
struct Channels {
  Channels(const Operator& op, const Shape& shape) {
    const bool last = attribute(op, "channels_last", false);
    const std::size_t axis = last ? shape.size() - 1 : 1;
    outer = product(shape, 0, axis);
    channels = static_cast<std::size_t>(shape[axis]);
    inner = product(shape, axis + 1, shape.size());
  }
  double each() const noexcept { return static_cast<double>(outer * inner); }

  /// Values of one index of `outer`, which lie together.
  std::size_t part() const noexcept { return channels * inner; }

  /// body(channel, position) for every value of one index of `outer`.
  template <class Body>
  void for_each_in(std::size_t index, const Body& body) const {
    std::size_t at = index * part();
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t i = 0; i < inner; ++i, ++at) body(c, at);
    }
  }
  /// body(channel, position) for every value.
  template <class Body>
  void for_each(const Body& body) const {
    for (std::size_t o = 0; o < outer; ++o) for_each_in(o, body);
  }

  std::size_t outer, channels, inner;
};

/// Throws: Error(config) where a tensor of this shape has no known number of channels.
inline std::int64_t channel_count(const Inference& inference, const Shape& shape) {
  if (shape.size() < 2) inference.fail("the input needs two dimensions or more");
  const std::int64_t channels = attribute(inference.op(), "channels_last", false) ? shape.back() : shape[1];
  if (channels < 0) inference.fail("the number of channels is not known");
  return channels;
}

}  // namespace fleetrun::engine
