// The product that `linear` and what passes make of it begin with.
#pragma once

#include <cstddef>

#include "runtime/engine/program.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::engine {

struct LinearSize {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

/// out = x·weight, with x's offsets; returns the size of `out`. `shape` is the caller's, who keeps it from step to step so
/// that none allocates.
/// Shapes: x [.., K], weight [K, M] -> out [.., M]. Throws: Error(config) where the two disagree.
LinearSize multiply_linear(const Operator& op, const Tensor& x, const Tensor& weight, Tensor& out,
                           Shape& shape);

}  // namespace fleetrun::engine
