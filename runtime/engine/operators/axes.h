// Axes as attributes name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/engine/operators.h"

namespace fleetrun::engine {

/// A negative axis counts from the end. Throws: Error(config) when there is no such axis.
inline std::size_t axis_of(const Operator& op, std::int64_t axis, std::size_t dimensions) {
  const auto size = static_cast<std::int64_t>(dimensions);
  const std::int64_t from_start = axis < 0 ? axis + size : axis;
  if (from_start < 0 || from_start >= size) {
    fail(op,
         "there is no axis " + std::to_string(axis) + " in " + std::to_string(dimensions) + " dimensions");
  }
  return static_cast<std::size_t>(from_start);
}

/// The product of dimensions [begin, end).
inline std::size_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::size_t size = 1;
  for (std::size_t d = begin; d < end; ++d) size *= static_cast<std::size_t>(shape[d]);
  return size;
}

}  // namespace fleetrun::engine
