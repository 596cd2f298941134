// Optimizer steps, float32, in place: the outputs are the same variables as the inputs of the same name. lr
// is learning_rate, times Rate (float32 [1]) when given; g is the gradient plus l1_decay * sign(w) + l2_decay
// * w.
//
// With Keys, Gradient is [n, width]: gradients of the rows that they name. Those of equal keys are added up
// first, in order; rows without a key do not change, except that momentum and rmsprop, and adam without
// lazy_rows, move every row by its state, as if its gradient were 0.
//
// Sources: adam: Kingma and Ba 2014, algorithm 1, with the corrections moved into the step (with Keys those
// of t + 1, and epsilon itself in rows without a key, as in Paddle 2.6 on CPUs). ftrl: McMahan et al. 2013,
// algorithm 1, with l2 counted twice as Paddle and TensorFlow do.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/merged_rows.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

namespace {

void infer_update(Inference& inference) {
  const Operator& op = inference.op();
  static const std::map<std::string_view, std::size_t> kStates = {
      {"sgd", 0},      {"adagrad", 1},       {"momentum", 1},       {"ftrl", 2},
      {"adadelta", 2}, {"rmsprop", 3},       {"adam", 3},           {"adamax", 3},
      {"lamb", 3},     {"lars_momentum", 1}, {"decayed_adagrad", 1}};
  const std::size_t states = kStates.at(op.type);
  inference.expect_inputs(4 + states, 4 + states);
  inference.expect_outputs(1 + states, 1 + states);
  inference.expect_type(0, DataType::float32);
  inference.expect_type(1, DataType::float32);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (op.outputs[i] != op.inputs[i == 0 ? 0 : i + 3]) inference.fail("updates its inputs in place");
  }
}

struct Rule {
  float learning_rate, beta1, beta2, epsilon, momentum, rho, l1, l2, power, l1_decay, l2_decay, own_decay;
  bool nesterov, centered;
  /// A schedule's factor of the learning rate; nullptr for none.
  const Tensor* scheduled;

  explicit Rule(const Preparation& p)
      : learning_rate(number(p.op, "learning_rate", 0.001)),
        beta1(number(p.op, "beta1", 0.9)),
        beta2(number(p.op, "beta2", 0.999)),
        epsilon(number(p.op, "epsilon", 1e-8)),
        momentum(number(p.op, "momentum", 0.9)),
        rho(number(p.op, "rho", 0.95)),
        l1(number(p.op, "l1", 0.0)),
        l2(number(p.op, "l2", 0.0)),
        power(number(p.op, "learning_rate_power", -0.5)),
        l1_decay(number(p.op, "l1_decay", 0.0)),
        l2_decay(number(p.op, "l2_decay", 0.0)),
        own_decay(number(p.op, "own_decay", 0.0)),
        nesterov(attribute(p.op, "nesterov", false)),
        centered(attribute(p.op, "centered", false)),
        scheduled(p.input(3)) {}

  /// The rule of this step: the schedule's rate put in.
  Rule now() const {
    Rule rule = *this;
    if (scheduled != nullptr) rule.learning_rate *= scheduled->values<float>()[0];
    return rule;
  }
  bool decays() const noexcept { return l1_decay != 0.0f || l2_decay != 0.0f; }
  /// The gradient `g` of the value `w` with its decay.
  float gradient(float g, float w) const noexcept {
    const float sign = w > 0.0f ? 1.0f : w < 0.0f ? -1.0f : 0.0f;
    return g + l2_decay * w + l1_decay * sign;
  }

  static float number(const Operator& op, const char* name, double fallback) {
    return static_cast<float>(attribute(op, name, fallback));
  }
};

// Gradients are passed as a pointer, null for zeros; decay is put in only where there is some, so that the
// plain loops stay what the compiler makes vectors of.
template <class Step>
void for_gradients(const Rule& rule, const float* w, const float* g, std::size_t size, const Step& step) {
  if (g == nullptr) {
    vectorized([=]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < size; ++i) step(i, rule.gradient(0.0f, w[i]));
    });
  } else if (rule.decays()) {
    vectorized([=]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < size; ++i) step(i, rule.gradient(g[i], w[i]));
    });
  } else {
    vectorized([=]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < size; ++i) step(i, g[i]);
    });
  }
}

void sgd_step(const Rule& rule, float* w, const float* g, std::size_t size) {
  const float rate = rule.learning_rate;
  for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) { w[i] -= rate * gradient; });
}

void momentum_step(const Rule& rule, float* w, const float* g, float* velocity, std::size_t size) {
  const float rate = rule.learning_rate, keep = rule.momentum;
  if (rule.nesterov) {
    for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) {
      velocity[i] = keep * velocity[i] + gradient;
      w[i] -= rate * (gradient + keep * velocity[i]);
    });
    return;
  }
  for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) {
    velocity[i] = keep * velocity[i] + gradient;
    w[i] -= rate * velocity[i];
  });
}

void adagrad_step(const Rule& rule, float* w, const float* g, float* moment, std::size_t size) {
  const float rate = rule.learning_rate, epsilon = rule.epsilon;
  for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) {
    moment[i] += gradient * gradient;
    w[i] -= rate * gradient / (std::sqrt(moment[i]) + epsilon);
  });
}

void decayed_adagrad_step(const Rule& rule, float* w, const float* g, float* moment, std::size_t size) {
  const float rate = rule.learning_rate, rho = rule.rho, epsilon = rule.epsilon;
  for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) {
    moment[i] = rho * moment[i] + (1.0f - rho) * gradient * gradient;
    w[i] -= rate * gradient / (std::sqrt(moment[i]) + epsilon);
  });
}

void rmsprop_step(const Rule& rule, float* w, const float* g, float* square, float* velocity, float* mean,
                  std::size_t size) {
  const float rate = rule.learning_rate, rho = rule.rho, keep = rule.momentum, epsilon = rule.epsilon;
  const float centre = rule.centered ? 1.0f : 0.0f;
  for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) {
    square[i] = rho * square[i] + (1.0f - rho) * gradient * gradient;
    mean[i] = centre * (rho * mean[i] + (1.0f - rho) * gradient);
    velocity[i] = keep * velocity[i] + rate * gradient / std::sqrt(square[i] - mean[i] * mean[i] + epsilon);
    w[i] -= velocity[i];
  });
}

void ftrl_step(const Rule& rule, float* w, const float* g, float* squared, float* linear, std::size_t size) {
  const float rate = rule.learning_rate, l1 = rule.l1, l2 = rule.l2, power = rule.power;
  const bool is_root = power == -0.5f;
  for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) {
    const float before = squared[i], after = before + gradient * gradient;
    const float root = is_root ? std::sqrt(after) : std::pow(after, -power);
    const float old_root = is_root ? std::sqrt(before) : std::pow(before, -power);
    linear[i] += gradient - (root - old_root) / rate * w[i];
    squared[i] = after;
    const float z = linear[i];
    w[i] = std::abs(z) > l1 ? ((z > 0.0f ? l1 : -l1) - z) / (root / rate + 2.0f * l2) : 0.0f;
  });
}

void adadelta_step(const Rule& rule, float* w, const float* g, float* squares, float* updates,
                   std::size_t size, bool older) {
  const float rate = rule.learning_rate, rho = rule.rho, epsilon = rule.epsilon;
  for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) {
    squares[i] = rho * squares[i] + (1.0f - rho) * gradient * gradient;
    const float update = std::sqrt((updates[i] + epsilon) / (squares[i] + epsilon)) * gradient;
    updates[i] = rho * updates[i] + (1.0f - rho) * update * update;
    w[i] -= rate * (older ? std::sqrt((updates[i] + epsilon) / (squares[i] + epsilon)) * gradient : update);
  });
}

/// 1 - β^step.
float left_of(float beta, std::int64_t step) {
  return static_cast<float>(1.0 - std::pow(static_cast<double>(beta), static_cast<double>(step)));
}

void adamax_step(const Rule& rule, std::int64_t step, float* w, const float* g, float* moment, float* norm,
                 std::size_t size) {
  const float rate = rule.learning_rate / left_of(rule.beta1, step);
  const float b1 = rule.beta1, b2 = rule.beta2, epsilon = rule.epsilon;
  for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) {
    moment[i] = b1 * moment[i] + (1.0f - b1) * gradient;
    norm[i] = std::max(std::abs(gradient), b2 * norm[i] + epsilon);
    w[i] -= rate * (moment[i] / norm[i]);
  });
}

double norm_of(const float* values, std::size_t size) {
  double squares = 0.0;
  for (std::size_t i = 0; i < size; ++i) squares += static_cast<double>(values[i]) * values[i];
  return std::sqrt(squares);
}

/// `ratio` is scratch of `size`.
void lamb_step(const Rule& rule, std::int64_t step, bool adapts, bool older, float* w, const float* g,
               float* m, float* v, float* ratio, std::size_t size) {
  const float b1 = rule.beta1, b2 = rule.beta2, epsilon = rule.epsilon, decay = rule.own_decay;
  const float left1 = older ? 1.0f : left_of(b1, step), left2 = older ? 1.0f : left_of(b2, step);
  for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) {
    m[i] = b1 * m[i] + (1.0f - b1) * gradient;
    v[i] = b2 * v[i] + (1.0f - b2) * gradient * gradient;
    ratio[i] = m[i] / left1 / (std::sqrt(v[i] / left2) + epsilon) + decay * w[i];
  });
  float rate = rule.learning_rate;
  const double of_w = norm_of(w, size), of_ratio = norm_of(ratio, size);
  if ((decay > 0.0f || adapts || older) && of_w > 0.0 && of_ratio > 0.0)
    rate *= static_cast<float>(of_w / of_ratio);
  for (std::size_t i = 0; i < size; ++i) w[i] -= rate * ratio[i];
}

/// `decayed` is scratch of `size`.
void lars_step(const Rule& rule, float coefficient, float* w, const float* g, float* velocity, float* decayed,
               std::size_t size) {
  const float keep = rule.momentum, decay = rule.own_decay;
  for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) { decayed[i] = gradient; });
  float rate = rule.learning_rate;
  const double of_w = norm_of(w, size), of_gradient = norm_of(decayed, size);
  if (decay > 0.0f && of_w > 0.0 && of_gradient > 0.0) {
    rate *= static_cast<float>(coefficient * of_w / (of_gradient + decay * of_w + rule.epsilon));
  }
  for (std::size_t i = 0; i < size; ++i) {
    velocity[i] = keep * velocity[i] + rate * (decayed[i] + decay * w[i]);
    w[i] -= velocity[i];
  }
}

/// The step's factors of bias correction.
struct AdamStep {
  Rule rule;
  float rate, epsilon;

  AdamStep(const Rule& in_rule, std::int64_t step, bool older) : rule(in_rule) {
    const double t = static_cast<double>(step);
    const double correction = std::sqrt(1.0 - std::pow(static_cast<double>(rule.beta2), t));
    rate = static_cast<float>(rule.learning_rate * correction /
                              (1.0 - std::pow(static_cast<double>(rule.beta1), t)));
    epsilon = older ? rule.epsilon : static_cast<float>(rule.epsilon * correction);
  }

  /// In rows without a key (`g` is null) Paddle 2.6 on CPUs does not correct epsilon.
  void apply(float* w, const float* g, float* m, float* v, std::size_t size) const {
    const float b1 = rule.beta1, b2 = rule.beta2, by = rate, add = g == nullptr ? rule.epsilon : epsilon;
    if (rule.own_decay != 0.0f) {
      const float keep = 1.0f - rule.learning_rate * rule.own_decay;
      return for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) {
        m[i] = b1 * m[i] + (1.0f - b1) * gradient;
        v[i] = b2 * v[i] + (1.0f - b2) * gradient * gradient;
        w[i] = keep * w[i] - by * m[i] / (std::sqrt(v[i]) + add);
      });
    }
    for_gradients(rule, w, g, size, [=](std::size_t i, float gradient) {
      m[i] = b1 * m[i] + (1.0f - b1) * gradient;
      v[i] = b2 * v[i] + (1.0f - b2) * gradient * gradient;
      w[i] -= by * m[i] / (std::sqrt(v[i]) + add);
    });
  }
};

/// Calls step(offset, gradient or nullptr, size) for the rows of merged gradients;
/// with `others`, also for those between.
template <class Step>
void for_rows(const MergedRows& merged, std::size_t width, std::size_t rows, bool others, const Step& step) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < merged.keys().size(); ++i) {
    const std::size_t at = merged.keys()[i];
    if (others && at > next) step(next * width, nullptr, (at - next) * width);
    step(at * width, merged.values() + i * width, width);
    next = at + 1;
  }
  if (others && rows > next) step(next * width, nullptr, (rows - next) * width);
}

void check_sizes(const Operator& op, const Tensor& w, const Tensor& g, bool rows) {
  const bool agree = rows ? !w.shape().empty() && !g.shape().empty() && w.shape().back() == g.shape().back()
                          : w.size() == g.size();
  if (!agree) {
    fail(op, "the parameter is " + to_string(w.shape()) + ", the gradient " + to_string(g.shape()));
  }
}

/// What all kernels but sgd's do: step(offset, gradient or nullptr,
/// size) over the whole parameter or over its rows.
struct Stepped {
  const Operator* op;
  const Tensor* gradient;
  const Tensor* keys;
  Tensor* parameter;
  /// Rows without a gradient are stepped too.
  bool others = false;
  MergedRows merged = {};

  Stepped(const Preparation& p, bool in_others)
      : op(&p.op), gradient(p.input(1)), keys(p.input(2)), parameter(p.output(0)), others(in_others) {}

  template <class Step>
  void run(const Step& step) {
    check_sizes(*op, *parameter, *gradient, keys != nullptr);
    if (keys == nullptr) return step(0, gradient->values<float>().data(), parameter->size());
    if (parameter->size() == 0) return;
    const auto width = static_cast<std::size_t>(parameter->shape().back());
    const std::size_t rows = parameter->size() / width;
    merged.merge(*keys, *gradient, width, rows);
    for_rows(merged, width, rows, others, step);
  }
};

float* data_of(Tensor* tensor) {
  return tensor->values<float>().data();
}

Kernel prepare_sgd(const Preparation& p) {
  return [stepped = Stepped(p, false), prepared = Rule(p)]() mutable {
    const Rule rule = prepared.now();
    float* values = data_of(stepped.parameter);
    if (stepped.keys == nullptr || rule.decays()) {
      stepped.run(
          [&](std::size_t at, const float* g, std::size_t size) { sgd_step(rule, values + at, g, size); });
      return;
    }
    check_sizes(*stepped.op, *stepped.parameter, *stepped.gradient, true);
    // Without decay the step is linear in the gradient: equal keys need not be merged.
    const auto width = static_cast<std::size_t>(stepped.parameter->shape().back());
    const float* from = stepped.gradient->values<float>().data();
    const auto all = stepped.keys->values<std::int64_t>();
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

Kernel prepare_momentum(const Preparation& p) {
  return [stepped = Stepped(p, true), velocity = p.output(1), prepared = Rule(p)]() mutable {
    stepped.run([&, rule = prepared.now()](std::size_t at, const float* g, std::size_t size) {
      momentum_step(rule, data_of(stepped.parameter) + at, g, data_of(velocity) + at, size);
    });
  };
}

Kernel prepare_adagrad(const Preparation& p) {
  return [stepped = Stepped(p, false), moment = p.output(1), prepared = Rule(p)]() mutable {
    stepped.run([&, rule = prepared.now()](std::size_t at, const float* g, std::size_t size) {
      adagrad_step(rule, data_of(stepped.parameter) + at, g, data_of(moment) + at, size);
    });
  };
}

Kernel prepare_decayed_adagrad(const Preparation& p) {
  return [stepped = Stepped(p, true), moment = p.output(1), prepared = Rule(p)]() mutable {
    stepped.run([&, rule = prepared.now()](std::size_t at, const float* g, std::size_t size) {
      decayed_adagrad_step(rule, data_of(stepped.parameter) + at, g, data_of(moment) + at, size);
    });
  };
}

Kernel prepare_rmsprop(const Preparation& p) {
  return [stepped = Stepped(p, true), square = p.output(1), velocity = p.output(2), mean = p.output(3),
          prepared = Rule(p)]() mutable {
    stepped.run([&, rule = prepared.now()](std::size_t at, const float* g, std::size_t size) {
      rmsprop_step(rule, data_of(stepped.parameter) + at, g, data_of(square) + at, data_of(velocity) + at,
                   data_of(mean) + at, size);
    });
  };
}

Kernel prepare_ftrl(const Preparation& p) {
  return [stepped = Stepped(p, false), squared = p.output(1), linear = p.output(2),
          prepared = Rule(p)]() mutable {
    stepped.run([&, rule = prepared.now()](std::size_t at, const float* g, std::size_t size) {
      ftrl_step(rule, data_of(stepped.parameter) + at, g, data_of(squared) + at, data_of(linear) + at, size);
    });
  };
}

Kernel prepare_adam(const Preparation& p) {
  const bool lazy = attribute(p.op, "lazy_rows", false);
  return [stepped = Stepped(p, !lazy), first = p.output(1), second = p.output(2), steps = p.output(3),
          prepared = Rule(p), older = attribute(p.op, "older_formula", false)]() mutable {
    const std::int64_t now = ++steps->values<std::int64_t>()[0];
    const AdamStep step(prepared.now(), stepped.keys == nullptr ? now : now + 1, older);
    stepped.run([&](std::size_t at, const float* g, std::size_t size) {
      step.apply(data_of(stepped.parameter) + at, g, data_of(first) + at, data_of(second) + at, size);
    });
  };
}

Kernel prepare_adadelta(const Preparation& p) {
  return [stepped = Stepped(p, true), squares = p.output(1), updates = p.output(2), prepared = Rule(p),
          older = attribute(p.op, "older_formula", false)]() mutable {
    stepped.run([&, rule = prepared.now()](std::size_t at, const float* g, std::size_t size) {
      adadelta_step(rule, data_of(stepped.parameter) + at, g, data_of(squares) + at, data_of(updates) + at,
                    size, older);
    });
  };
}

Kernel prepare_adamax(const Preparation& p) {
  return [stepped = Stepped(p, true), moment = p.output(1), norm = p.output(2), steps = p.output(3),
          prepared = Rule(p)]() mutable {
    const std::int64_t now = ++steps->values<std::int64_t>()[0];
    stepped.run([&, rule = prepared.now()](std::size_t at, const float* g, std::size_t size) {
      adamax_step(rule, now, data_of(stepped.parameter) + at, g, data_of(moment) + at, data_of(norm) + at,
                  size);
    });
  };
}

Kernel prepare_lamb(const Preparation& p) {
  return [stepped = Stepped(p, true), first = p.output(1), second = p.output(2), steps = p.output(3),
          prepared = Rule(p), adapts = attribute(p.op, "always_adapts", false),
          older = attribute(p.op, "older_formula", false), ratio = std::vector<float>()]() mutable {
    if (stepped.keys != nullptr) fail(*stepped.op, "its step needs the gradients of all rows");
    const std::int64_t now = ++steps->values<std::int64_t>()[0];
    ratio.resize(stepped.parameter->size());
    stepped.run([&, rule = prepared.now()](std::size_t, const float* g, std::size_t size) {
      lamb_step(rule, now, adapts, older, data_of(stepped.parameter), g, data_of(first), data_of(second),
                ratio.data(), size);
    });
  };
}

Kernel prepare_lars(const Preparation& p) {
  return [stepped = Stepped(p, true), velocity = p.output(1), prepared = Rule(p),
          coefficient = Rule::number(p.op, "lars_coefficient", 0.001),
          decayed = std::vector<float>()]() mutable {
    if (stepped.keys != nullptr) fail(*stepped.op, "its step needs the gradients of all rows");
    decayed.resize(stepped.parameter->size());
    stepped.run([&, rule = prepared.now()](std::size_t, const float* g, std::size_t size) {
      lars_step(rule, coefficient, data_of(stepped.parameter), g, data_of(velocity), decayed.data(), size);
    });
  };
}

}  // namespace

std::span<const OperatorDefinition> update_operators() {
  static constexpr OperatorDefinition all[] = {
      {"sgd",
       infer_update,
       prepare_sgd,
       nullptr,
       {"(Parameter, Gradient, Keys or none, Rate or none) -> Parameter", "w -= lr * g",
        "learning_rate; l1_decay = 0; l2_decay = 0"}},
      {"adagrad",
       infer_update,
       prepare_adagrad,
       nullptr,
       {"(Parameter, Gradient, Keys or none, Rate or none, Moment) -> Parameter, Moment",
        "m += g * g, w -= lr * g / (sqrt(m) + epsilon)",
        "learning_rate; l1_decay = 0; l2_decay = 0; epsilon = 1e-8"}},
      {"adam",
       infer_update,
       prepare_adam,
       nullptr,
       {"(Parameter, Gradient, Keys or none, Rate or none, Moment1, Moment2, Step int64 [1]) -> Parameter, "
        "Moment1, Moment2, Step",
        "t += 1, m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g, w -= lr * sqrt(1 - "
        "beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon * sqrt(1 - beta2^t)); with Keys t + 1 instead of "
        "t in w, and epsilon alone in rows without a key, or with older_formula in all",
        "learning_rate; l1_decay = 0; l2_decay = 0; beta1 = 0.9; beta2 = 0.999; epsilon = 1e-8; "
        "older_formula = false; lazy_rows = false; own_decay = 0 (w -= lr * own_decay * w before: Loshchilov "
        "and Hutter 2019)"}},
      {"momentum",
       infer_update,
       prepare_momentum,
       nullptr,
       {"(Parameter, Gradient, Keys or none, Rate or none, Velocity) -> Parameter, Velocity",
        "v = momentum * v + g, w -= lr * v; nesterov: w -= lr * (g + momentum * v)",
        "learning_rate; l1_decay = 0; l2_decay = 0; momentum = 0.9; nesterov = false"}},
      {"ftrl",
       infer_update,
       prepare_ftrl,
       nullptr,
       {"(Parameter, Gradient, Keys or none, Rate or none, Squared, Linear) -> Parameter, Squared, Linear",
        "n += g * g, z += g - (n_new^-p - n_old^-p) / lr * w, w = |z| <= l1 ? 0 : (sign(z) * l1 - z) / "
        "(n_new^-p / lr + 2 * l2), p = learning_rate_power",
        "learning_rate; l1_decay = 0; l2_decay = 0; l1 = 0; l2 = 0; learning_rate_power = -0.5"}},
      {"rmsprop",
       infer_update,
       prepare_rmsprop,
       nullptr,
       {"(Parameter, Gradient, Keys or none, Rate or none, MeanSquare, Velocity, Mean) -> Parameter, "
        "MeanSquare, Velocity, Mean",
        "s = rho * s + (1 - rho) * g * g, v = momentum * v + lr * g / sqrt(s + epsilon), w -= v; centered: "
        "m = rho * m + (1 - rho) * g, and s - m * m instead of s",
        "learning_rate; l1_decay = 0; l2_decay = 0; rho = 0.95; momentum = 0.9; epsilon = 1e-8; centered = "
        "false"}},
      {"adamax",
       infer_update,
       prepare_adamax,
       nullptr,
       {"(Parameter, Gradient, Keys or none, Rate or none, Moment, Norm, Step int64 [1]) -> Parameter, "
        "Moment, "
        "Norm, Step",
        "t += 1, m = beta1 * m + (1 - beta1) * g, u = max(|g|, beta2 * u + epsilon), w -= lr / (1 - beta1^t) "
        "* "
        "m / u",
        "learning_rate; l1_decay = 0; l2_decay = 0; beta1 = 0.9; beta2 = 0.999; epsilon = 1e-8"}},
      {"adadelta",
       infer_update,
       prepare_adadelta,
       nullptr,
       {"(Parameter, Gradient, Keys or none, Rate or none, Squares, Updates) -> Parameter, Squares, Updates",
        "s = rho * s + (1 - rho) * g * g, d = sqrt((u + epsilon) / (s + epsilon)) * g, u = rho * u + (1 - "
        "rho) * "
        "d * d, w -= lr * d; with older_formula d is computed once more for that, with the new u",
        "learning_rate; l1_decay = 0; l2_decay = 0; rho = 0.95; epsilon = 1e-8; older_formula = false"}},
      {"lamb",
       infer_update,
       prepare_lamb,
       nullptr,
       {"(Parameter, Gradient, Keys or none, Rate or none, Moment1, Moment2, Step int64 [1]) -> Parameter, "
        "Moment1, Moment2, Step",
        "m and v as adam's, r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + own_decay * w, w "
        "-= lr "
        "* |w| / |r| * r, or lr * r where a norm is 0 or there is neither own_decay nor always_adapts. You "
        "et al. 2020. With older_formula: m and v without the powers, and always by the norms",
        "learning_rate; l1_decay = 0; l2_decay = 0; beta1 = 0.9; beta2 = 0.999; epsilon = 1e-8; own_decay = "
        "0; always_adapts = false; older_formula = false"}},
      {"lars_momentum",
       infer_update,
       prepare_lars,
       nullptr,
       {"(Parameter, Gradient, Keys or none, Rate or none, Velocity) -> Parameter, Velocity",
        "r = lr * lars_coefficient * |w| / (|g| + own_decay * |w| + epsilon), or lr without own_decay or "
        "where "
        "a norm is 0; v = momentum * v + r * (g + own_decay * w), w -= v. You et al. 2017",
        "learning_rate; l1_decay = 0; l2_decay = 0; momentum = 0.9; epsilon = 1e-8; own_decay = 0; "
        "lars_coefficient = 0.001"}},
      {"decayed_adagrad",
       infer_update,
       prepare_decayed_adagrad,
       nullptr,
       {"(Parameter, Gradient, Keys or none, Rate or none, Moment) -> Parameter, Moment",
        "m = rho * m + (1 - rho) * g * g, w -= lr * g / (sqrt(m) + epsilon)",
        "learning_rate; l1_decay = 0; l2_decay = 0; rho = 0.95; epsilon = 1e-8"}},
  };
  return all;
}

}  // namespace fleetrun::engine
