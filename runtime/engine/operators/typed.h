// Code that is the same for every element type.
#pragma once

#include <cstdint>

#include "runtime/engine/program.h"

namespace fleetrun::engine {

/// call(T{}), T being the C++ type of `type`.
template <class Call>
void with_type(DataType type, const Call& call) {
  switch (type) {
    case DataType::float32:
      return call(float{});
    case DataType::float64:
      return call(double{});
    case DataType::int32:
      return call(std::int32_t{});
    case DataType::int64:
      return call(std::int64_t{});
    case DataType::boolean:
      return call(bool{});
  }
}

/// call(T{}) for values that have gradients: double for float64, else float.
template <class Call>
void with_gradient_type(DataType type, const Call& call) {
  if (type == DataType::float64) return call(double{});
  call(float{});
}

}  // namespace fleetrun::engine
