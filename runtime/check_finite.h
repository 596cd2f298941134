// FLAGS_check_nan_inf: a pass stops at the first operator that makes NaN or an infinity.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/engine/program.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::runtime {

struct BatchPlace {
  /// From 1.
  std::uint64_t batch;
  std::size_t thread;
};

/// After an operator: `tensor` gives a variable's value. Throws: Error(data) naming the operator, the variable and the batch.
void check_finite(const engine::Operator& op,
                  const std::function<const engine::Tensor&(const std::string&)>& tensor,
                  const BatchPlace& place);

}  // namespace fleetrun::runtime
