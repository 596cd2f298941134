// What `linear`, its gradient and what passes make of them have in common.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/program.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::engine {

struct LinearSize {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

/// out = x·weight, with x's offsets; returns the size of `out`. `shape` is the caller's, who keeps it from
/// step to step so that none allocates.
/// Shapes: x [.., K], weight [K, M] -> out [.., M]. Throws: Error(config) where the two disagree.
LinearSize multiply_linear(const Operator& op, const Tensor& x, const Tensor& weight, Tensor& out,
                           Shape& shape);

/// The end of a linear operator's gradient: from dZ, the gradient of X·Weight + Bias,
/// to dX, dWeight and dBias.
///
/// outputs: dX, dWeight, dBias, each "" where it is not wanted. With an attribute weight_rate (bias_rate) the
/// second (third) is the parameter itself, which is stepped: parameter -= rate·gradient; the rate is
/// multiplied by the input at `rates` (`rates` + 1), a schedule's float32 [1], unless that is "".
class LinearGradient {
 public:
  LinearGradient(const Preparation& p, std::size_t rates);

  /// Where the column sums of dZ go, `columns` of them.
  float* begin(std::size_t columns);
  /// After the sums are there. Shapes: dz [rows, columns].
  void finish(const float* dz);

 private:
  /// A step down the gradient instead of the gradient itself.
  struct Step {
    float rate;
    const Tensor* scheduled;
    float now() const { return scheduled == nullptr ? rate : rate * scheduled->values<float>()[0]; }
  };
  static std::optional<Step> step_of(const Preparation& p, const char* attribute, std::size_t input);
  void finish_weight(const float* dz, std::size_t rows, std::size_t inner, std::size_t columns);

  const Tensor* x_;
  const Tensor* weight_;
  Tensor* dx_;
  Tensor* dw_;
  Tensor* db_;
  std::optional<Step> weight_step_, bias_step_;
  std::vector<float> sums_;
  Shape bias_shape_ = Shape(1);
};

}  // namespace fleetrun::engine
