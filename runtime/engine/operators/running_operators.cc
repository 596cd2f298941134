// What the values up to a place along an axis give: their product, the logarithm of the sum of their powers
// of e, the greatest or smallest of them.

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/choice.h"
#include "runtime/engine/operators/lines.h"
#include "runtime/engine/operators/typed.h"

namespace fleetrun::engine {

namespace {

Lines running_lines(const Operator& op, const Tensor& x) {
  return {x.shape(), axis_of(op, attribute(op, "axis", std::int64_t{-1}), x.shape().size())};
}

void infer_running(Inference& inference) {
  const bool has_places = inference.op().type.starts_with("cumm");
  inference.expect_inputs(1, 1);
  inference.expect_outputs(has_places ? 2 : 1, has_places ? 2 : 1);
  const Variable x = inference.input(0);
  if (x.type == DataType::boolean || inference.op().type == "logcumsumexp") {
    inference.expect_type(0, DataType::float32);
  }
  if (x.shape.empty()) inference.fail("the input has no axis");
  axis_of(inference.op(), attribute(inference.op(), "axis", std::int64_t{-1}), x.shape.size());
  inference.set_output(0, x.type, x.shape);
  if (has_places) inference.set_output(1, DataType::int64, x.shape);
}

template <class Call>
void with_numbers(DataType type, const Call& call) {
  with_type(type, [&]<class T>(T value) {
    if constexpr (!std::is_same_v<T, bool>) call(value);
  });
}

Kernel prepare_cumprod(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0)] {
    out->resize(x->type(), x->shape());
    const Lines lines = running_lines(*op, *x);
    with_numbers(x->type(), [&]<class T>(T) {
      const T* from = x->values<T>().data();
      T* to = out->values<T>().data();
      lines.for_each([&](std::size_t, std::size_t first) {
        T product{1};
        for (std::size_t k = 0; k < lines.size; ++k) {
          product = static_cast<T>(product * from[first + k * lines.inner]);
          to[first + k * lines.inner] = product;
        }
      });
    });
  };
}

/// (X, dOut) -> dX: for each value the products of the others, so that a 0 does no harm.
Kernel prepare_cumprod_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), g = p.input(1), dx = p.output(0)] {
    dx->resize(g->type(), x->shape());
    const Lines lines = running_lines(*op, *x);
    with_gradient_type(g->type(), [&]<class T>(T) {
      const T *from = x->values<T>().data(), *slope = g->values<T>().data();
      T* to = dx->values<T>().data();
      lines.for_each([&](std::size_t, std::size_t first) {
        const auto at = [&](std::size_t k) { return first + k * lines.inner; };
        T before{1};
        for (std::size_t k = 0; k < lines.size; ++k) {
          T others = before, sum{};
          for (std::size_t i = k; i < lines.size; ++i) {
            if (i > k) others *= from[at(i)];
            sum += slope[at(i)] * others;
          }
          to[at(k)] = sum;
          before *= from[at(k)];
        }
      });
    });
  };
}

Kernel prepare_logcumsumexp(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0)] {
    out->resize(DataType::float32, x->shape());
    const Lines lines = running_lines(*op, *x);
    const float* from = x->values<float>().data();
    float* to = out->values<float>().data();
    lines.for_each([&](std::size_t, std::size_t first) {
      double high = -std::numeric_limits<double>::infinity(), sum = 0.0;
      for (std::size_t k = 0; k < lines.size; ++k) {
        const double value = from[first + k * lines.inner];
        // -inf adds nothing, and leaves no difference of infinities.
        if (value > high)
          sum = high == -std::numeric_limits<double>::infinity() ? 0.0 : sum * std::exp(high - value);
        high = std::max(high, value);
        if (!std::isinf(value) || value > 0.0) sum += std::exp(value - high);
        to[first + k * lines.inner] = static_cast<float>(high + std::log(sum));
      }
    });
  };
}

/// (X, Out, dOut) -> dX
Kernel prepare_logcumsumexp_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), y = p.input(1), g = p.input(2), dx = p.output(0)] {
    dx->resize(DataType::float32, x->shape());
    const Lines lines = running_lines(*op, *x);
    const auto from = x->values<float>(), sums = y->values<float>(), slope = g->values<float>();
    const auto to = dx->values<float>();
    lines.for_each([&](std::size_t, std::size_t first) {
      const auto at = [&](std::size_t k) { return first + k * lines.inner; };
      for (std::size_t k = 0; k < lines.size; ++k) {
        float sum = 0.0f;
        for (std::size_t i = k; i < lines.size; ++i)
          sum += slope[at(i)] * std::exp(from[at(k)] - sums[at(i)]);
        to[at(k)] = sum;
      }
    });
  };
}

Kernel prepare_extreme(const Preparation& p) {
  return
      [op = &p.op, x = p.input(0), out = p.output(0), places = p.output(1), largest = p.op.type == "cummax"] {
        out->resize(x->type(), x->shape());
        places->resize(DataType::int64, x->shape());
        const Lines lines = running_lines(*op, *x);
        std::int64_t* at = places->values<std::int64_t>().data();
        with_numbers(x->type(), [&]<class T>(T) {
          const T* from = x->values<T>().data();
          T* to = out->values<T>().data();
          lines.for_each([&](std::size_t, std::size_t first) {
            std::size_t best = 0;
            for (std::size_t k = 0; k < lines.size; ++k) {
              const T value = from[first + k * lines.inner], leader = from[first + best * lines.inner];
              // As in Paddle the last of equal ones leads, and NaN from where it comes.
              if (is_nan(value) || (!is_nan(leader) && (largest ? value >= leader : value <= leader)))
                best = k;
              to[first + k * lines.inner] = from[first + best * lines.inner];
              at[first + k * lines.inner] = static_cast<std::int64_t>(best);
            }
          });
        });
      };
}

/// (X, Places, dOut) -> dX
Kernel prepare_extreme_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), places = p.input(1), g = p.input(2), dx = p.output(0)] {
    dx->resize(g->type(), x->shape());
    const Lines lines = running_lines(*op, *x);
    const std::int64_t* at = places->values<std::int64_t>().data();
    with_gradient_type(g->type(), [&]<class T>(T) {
      const T* from = g->values<T>().data();
      const auto to = dx->values<T>();
      std::fill(to.begin(), to.end(), T{});
      lines.for_each([&](std::size_t, std::size_t first) {
        for (std::size_t k = 0; k < lines.size; ++k) {
          const std::size_t i = first + k * lines.inner;
          to[first + static_cast<std::size_t>(at[i]) * lines.inner] += from[i];
        }
      });
    });
  };
}

void running_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  std::vector<std::string> inputs{op.inputs[0]};
  if (op.type != "cumprod") inputs.push_back(op.outputs.back());
  inputs.push_back(builder.output_gradient(0));
  builder.append({.type = op.type + "_grad",
                  .inputs = std::move(inputs),
                  .outputs = {builder.input_gradient(0)},
                  .attributes = op.attributes});
}

}  // namespace

std::span<const OperatorDefinition> running_operators() {
  static constexpr OperatorDefinition all[] = {
      {"cumprod",
       infer_running,
       prepare_cumprod,
       running_gradient,
       {"(X) -> Out", "the product of the values up to each", "axis = -1"}},
      {"cumprod_grad", infer_gradient, prepare_cumprod_gradient, nullptr},
      {"logcumsumexp",
       infer_running,
       prepare_logcumsumexp,
       running_gradient,
       {"(X float32) -> Out", "the logarithm of the sum of the powers of e up to each", "axis = -1"}},
      {"logcumsumexp_grad", infer_gradient, prepare_logcumsumexp_gradient, nullptr},
      {"cummax",
       infer_running,
       prepare_extreme,
       running_gradient,
       {"(X) -> Out, Places int64", "the greatest value up to each, and the last place that has it",
        "axis = -1"}},
      {"cummax_grad", infer_gradient, prepare_extreme_gradient, nullptr},
      {"cummin",
       infer_running,
       prepare_extreme,
       running_gradient,
       {"(X) -> Out, Places int64", "the smallest value up to each, and the last place that has it",
        "axis = -1"}},
      {"cummin_grad", infer_gradient, prepare_extreme_gradient, nullptr},
  };
  return all;
}

}  // namespace fleetrun::engine
