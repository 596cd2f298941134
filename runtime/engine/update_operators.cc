// Optimizer steps, float32, in place: the outputs are the same variables as the inputs of the same name.
//
//   sgd      (Parameter, Gradient, Keys or "") -> Parameter:  w -= lr·g
//   adagrad  (…, Moment) -> Parameter, Moment:  m += g², w -= lr·g/(sqrt(m) + epsilon)
//   adam     (…, Moment1, Moment2, Step int64 [1]) -> Parameter, Moment1, Moment2, Step:
//            t += 1, m = β1·m + (1-β1)·g, v = β2·v + (1-β2)·g²,
//            w -= lr·sqrt(1-β2^t)/(1-β1^t) · m/(sqrt(v) + epsilon·sqrt(1-β2^t))
//            Source: Kingma and Ba 2014, algorithm 1, with the corrections moved into the step
//   learning_rate, beta1, beta2, epsilon, l2_decay = 0 (g += l2_decay·w), lazy_rows = false
//
// With Keys, Gradient is [n, width]: gradients of the rows that they name. Those of equal keys are added up
// first, in order; rows without a key do not change, except that adam without lazy_rows moves every row by
// its moments, as if its gradient were 0.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/vector_math.h"

namespace fleetrun::engine {

namespace {

void infer_update(Inference& inference) {
  const Operator& op = inference.op();
  const std::size_t states = op.type == "adam" ? 3 : op.type == "adagrad" ? 1 : 0;
  inference.expect_inputs(3 + states, 3 + states);
  inference.expect_outputs(1 + states, 1 + states);
  inference.expect_type(0, DataType::float32);
  inference.expect_type(1, DataType::float32);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (op.outputs[i] != op.inputs[i == 0 ? 0 : i + 2]) inference.fail("updates its inputs in place");
  }
}

struct Rule {
  float learning_rate, beta1, beta2, epsilon, decay;

  explicit Rule(const Operator& op)
      : learning_rate(number(op, "learning_rate", 0.001)),
        beta1(number(op, "beta1", 0.9)),
        beta2(number(op, "beta2", 0.999)),
        epsilon(number(op, "epsilon", 1e-8)),
        decay(number(op, "l2_decay", 0.0)) {}

  static float number(const Operator& op, const char* name, double fallback) {
    return static_cast<float>(attribute(op, name, fallback));
  }
};

/// Gradients of equal keys added up; keys in ascending order.
class MergedRows {
 public:
  void merge(const Tensor& keys, const Tensor& gradients, std::size_t width, std::size_t rows) {
    const auto all = keys.values<std::int64_t>();
    const float* from = gradients.values<float>().data();
    order_.resize(all.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(),
              [all](std::size_t a, std::size_t b) { return all[a] != all[b] ? all[a] < all[b] : a < b; });
    keys_.clear();
    values_.clear();
    for (const std::size_t i : order_) {
      if (all[i] < 0 || static_cast<std::size_t>(all[i]) >= rows) {
        throw Error(ErrorKind::data,
                    "a gradient for row " + std::to_string(all[i]) + " of " + std::to_string(rows) + " rows");
      }
      const float* row = from + i * width;
      if (keys_.empty() || keys_.back() != static_cast<std::size_t>(all[i])) {
        keys_.push_back(static_cast<std::size_t>(all[i]));
        values_.insert(values_.end(), row, row + width);
        continue;
      }
      float* sum = values_.data() + values_.size() - width;
      for (std::size_t c = 0; c < width; ++c) sum[c] += row[c];
    }
  }

  const std::vector<std::size_t>& keys() const { return keys_; }
  const float* values() const { return values_.data(); }

 private:
  std::vector<std::size_t> order_;
  std::vector<std::size_t> keys_;
  std::vector<float> values_;
};

void sgd_step(const Rule& rule, float* w, const float* g, std::size_t size) {
  const float rate = rule.learning_rate, decay = rule.decay;
  vectorized([=]() __attribute__((always_inline)) {
    if (decay == 0.0f) {
      for (std::size_t i = 0; i < size; ++i) w[i] -= rate * g[i];
    } else {
      for (std::size_t i = 0; i < size; ++i) w[i] -= rate * (g[i] + decay * w[i]);
    }
  });
}

void adagrad_step(const Rule& rule, float* w, const float* g, float* moment, std::size_t size) {
  const float rate = rule.learning_rate, decay = rule.decay, epsilon = rule.epsilon;
  vectorized([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < size; ++i) {
      const float gradient = g[i] + decay * w[i];
      moment[i] += gradient * gradient;
      w[i] -= rate * gradient / (std::sqrt(moment[i]) + epsilon);
    }
  });
}

/// The step's factors of bias correction.
struct AdamStep {
  Rule rule;
  float rate, epsilon;

  AdamStep(const Rule& in_rule, std::int64_t step) : rule(in_rule) {
    const double t = static_cast<double>(step);
    const double correction = std::sqrt(1.0 - std::pow(static_cast<double>(rule.beta2), t));
    rate = static_cast<float>(rule.learning_rate * correction /
                              (1.0 - std::pow(static_cast<double>(rule.beta1), t)));
    epsilon = static_cast<float>(rule.epsilon * correction);
  }

  /// g may be null: zeros.
  void apply(float* w, const float* g, float* m, float* v, std::size_t size) const {
    const float b1 = rule.beta1, b2 = rule.beta2, decay = rule.decay, by = rate, add = epsilon;
    if (g == nullptr) {
      vectorized([=]() __attribute__((always_inline)) {
        for (std::size_t i = 0; i < size; ++i) {
          m[i] *= b1;
          v[i] *= b2;
          w[i] -= by * m[i] / (std::sqrt(v[i]) + add);
        }
      });
      return;
    }
    vectorized([=]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < size; ++i) {
        const float gradient = g[i] + decay * w[i];
        m[i] = b1 * m[i] + (1.0f - b1) * gradient;
        v[i] = b2 * v[i] + (1.0f - b2) * gradient * gradient;
        w[i] -= by * m[i] / (std::sqrt(v[i]) + add);
      }
    });
  }
};

void check_sizes(const Operator& op, const Tensor& w, const Tensor& g, bool rows) {
  const bool agree = rows ? !w.shape().empty() && !g.shape().empty() && w.shape().back() == g.shape().back()
                          : w.size() == g.size();
  if (!agree) {
    fail(op, "the parameter is " + to_string(w.shape()) + ", the gradient " + to_string(g.shape()));
  }
}

Kernel prepare_sgd(const Preparation& p) {
  return [op = &p.op, w = p.output(0), g = p.input(1), keys = p.input(2), rule = Rule(p.op),
          merged = MergedRows()]() mutable {
    check_sizes(*op, *w, *g, keys != nullptr);
    float* values = w->values<float>().data();
    if (keys == nullptr) return sgd_step(rule, values, g->values<float>().data(), w->size());
    const auto width = static_cast<std::size_t>(w->shape().back());
    const std::size_t rows = w->size() / width;
    if (rule.decay != 0.0f) {
      merged.merge(*keys, *g, width, rows);
      for (std::size_t i = 0; i < merged.keys().size(); ++i) {
        sgd_step(rule, values + merged.keys()[i] * width, merged.values() + i * width, width);
      }
      return;
    }
    // Without decay the step is linear in the gradient: equal keys need not be merged.
    const float* from = g->values<float>().data();
    const auto all = keys->values<std::int64_t>();
    const float rate = rule.learning_rate;
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < all.size(); ++i, from += width) {
      if (i + kAhead < all.size()) {
        __builtin_prefetch(values + static_cast<std::size_t>(all[i + kAhead]) * width, 1);
      }
      float* row = values + static_cast<std::size_t>(all[i]) * width;
      for (std::size_t c = 0; c < width; ++c) row[c] -= rate * from[c];
    }
  };
}

Kernel prepare_adagrad(const Preparation& p) {
  return [op = &p.op, w = p.output(0), g = p.input(1), keys = p.input(2), moment = p.output(1),
          rule = Rule(p.op), merged = MergedRows()]() mutable {
    check_sizes(*op, *w, *g, keys != nullptr);
    float* values = w->values<float>().data();
    float* moments = moment->values<float>().data();
    if (keys == nullptr) return adagrad_step(rule, values, g->values<float>().data(), moments, w->size());
    const auto width = static_cast<std::size_t>(w->shape().back());
    merged.merge(*keys, *g, width, w->size() / width);
    for (std::size_t i = 0; i < merged.keys().size(); ++i) {
      const std::size_t at = merged.keys()[i] * width;
      adagrad_step(rule, values + at, merged.values() + i * width, moments + at, width);
    }
  };
}

Kernel prepare_adam(const Preparation& p) {
  return [op = &p.op, w = p.output(0), g = p.input(1), keys = p.input(2), first = p.output(1),
          second = p.output(2), steps = p.output(3), rule = Rule(p.op),
          lazy = attribute(p.op, "lazy_rows", false), merged = MergedRows()]() mutable {
    check_sizes(*op, *w, *g, keys != nullptr);
    const AdamStep step(rule, ++steps->values<std::int64_t>()[0]);
    float* values = w->values<float>().data();
    float* m = first->values<float>().data();
    float* v = second->values<float>().data();
    if (keys == nullptr) return step.apply(values, g->values<float>().data(), m, v, w->size());
    const auto width = static_cast<std::size_t>(w->shape().back());
    const std::size_t rows = w->size() / width;
    merged.merge(*keys, *g, width, rows);
    std::size_t next = 0;
    for (std::size_t i = 0; i < merged.keys().size(); ++i) {
      const std::size_t at = merged.keys()[i];
      if (!lazy) {
        const std::size_t from = next * width;
        step.apply(values + from, nullptr, m + from, v + from, (at - next) * width);
        next = at + 1;
      }
      step.apply(values + at * width, merged.values() + i * width, m + at * width, v + at * width, width);
    }
    if (!lazy)
      step.apply(values + next * width, nullptr, m + next * width, v + next * width, (rows - next) * width);
  };
}

}  // namespace

std::span<const OperatorDefinition> update_operators() {
  static constexpr OperatorDefinition all[] = {
      {"sgd", infer_update, prepare_sgd, nullptr},
      {"adagrad", infer_update, prepare_adagrad, nullptr},
      {"adam", infer_update, prepare_adam, nullptr},
  };
  return all;
}

}  // namespace fleetrun::engine
