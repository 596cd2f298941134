// Channels brought to mean 0 and variance 1 over a batch, float32.
//
// Variances are of the whole (divided by n). Source: Ioffe and Szegedy, 2015.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/activation_formula.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/channels.h"

namespace fleetrun::engine {

namespace {

bool uses_running(const Operator& op) {
  const bool tests = attribute(op, "is_test", false) && !attribute(op, "trainable_statistics", false);
  return tests || attribute(op, "use_global_stats", false);
}

/// Whether a batch has one value of each channel, which has no variance: Paddle leaves it as it is, with its
/// gradient, and the running mean and variance as they are.
bool is_alone(const Channels& channels, bool running) {
  return !running && channels.each() == 1;
}

void infer_batch_norm(Inference& inference) {
  inference.expect_inputs(5, 5);
  inference.expect_outputs(5, 5);
  inference.expect_type(0, DataType::float32);
  const Variable& x = inference.input(0);
  const Shape shape = x.shape;
  const std::int64_t channels = channel_count(inference, shape);
  const char* const names[] = {"", "scale", "bias", "running mean", "running variance"};
  for (std::size_t i = 1; i < 5; ++i) expect_size(inference, i, channels, names[i]);
  inference.set_output(0, DataType::float32, shape, x.lod_level);
  for (std::size_t i = 1; i < 5; ++i) inference.set_output(i, DataType::float32, {channels});
}

void infer_activated(Inference& inference) {
  inference.fail("is made by passes only");
}

/// What follows: y = f(y), and d = g · f'(y). None: nothing, and d is not asked for.
struct Activation {
  void (*apply)(float* y, std::size_t size) = nullptr;
  void (*differentiate)(const float* y, const float* g, float* d, std::size_t size) = nullptr;
};

template <class F>
Activation activation() {
  return {[](float* y, std::size_t size) {
            vectorized([=]() __attribute__((always_inline)) {
              for (std::size_t i = 0; i < size; ++i) y[i] = F::value(y[i]);
            });
          },
          [](const float* y, const float* g, float* d, std::size_t size) {
            vectorized([=]() __attribute__((always_inline)) {
              for (std::size_t i = 0; i < size; ++i) d[i] = g[i] * F::slope(y[i]);
            });
          }};
}

Activation activation_of(const Operator& op) {
  const auto name = attribute(op, "activation", std::string());
  if (name == "relu") return activation<fused::Relu>();
  if (name == "sigmoid") return activation<fused::Sigmoid>();
  if (name == "tanh") return activation<fused::Tanh>();
  return {};
}

void batch_moments(const Channels& channels, const float* x, float* mean, float* variance) {
  std::vector<double> sums(channels.channels), squares(channels.channels);
  channels.for_each([&](std::size_t c, std::size_t at) { sums[c] += x[at]; });
  for (std::size_t c = 0; c < channels.channels; ++c) mean[c] = static_cast<float>(sums[c] / channels.each());
  channels.for_each([&](std::size_t c, std::size_t at) {
    const double distance = double(x[at]) - mean[c];
    squares[c] += distance * distance;
  });
  for (std::size_t c = 0; c < channels.channels; ++c)
    variance[c] = static_cast<float>(squares[c] / channels.each());
}

/// running = momentum * running + (1 - momentum) * batch.
void follow(const Tensor& running, Tensor& out, const float* batch, float momentum) {
  // Usually they are the same tensor, and other threads' too.
  if (out.shape() != running.shape()) out.resize(DataType::float32, running.shape());
  for (std::size_t c = 0; c < running.size(); ++c) {
    out.values<float>()[c] = momentum * running.values<float>()[c] + (1.0f - momentum) * batch[c];
  }
}

Kernel prepare_batch_norm(const Preparation& p) {
  return [op = &p.op, x = p.input(0), scale = p.input(1), bias = p.input(2), running_mean = p.input(3),
          running_variance = p.input(4), y = p.output(0), mean_out = p.output(1), variance_out = p.output(2),
          mean = p.output(3), variance = p.output(4),
          epsilon = static_cast<float>(attribute(p.op, "epsilon", 1e-5)),
          momentum = static_cast<float>(attribute(p.op, "momentum", 0.9)), running = uses_running(p.op),
          activation = activation_of(p.op)] {
    const Channels channels(*op, x->shape());
    for (const Tensor* each : {scale, bias, running_mean, running_variance})
      check_size(*op, each, channels.channels, "parameter of its channels");
    const float* from = x->values<float>().data();
    y->resize(DataType::float32, x->shape());
    y->offsets = x->offsets;
    float *means = filled(mean, channels.channels), *variances = filled(variance, channels.channels);
    if (running || x->size() == 0) {
      std::copy_n(data_of(running_mean), channels.channels, means);
      std::copy_n(data_of(running_variance), channels.channels, variances);
    } else {
      batch_moments(channels, from, means, variances);
      const float kept = is_alone(channels, running) ? 1.0f : momentum;
      follow(*running_mean, *mean_out, means, kept);
      follow(*running_variance, *variance_out, variances, kept);
    }
    const float *s = data_of(scale), *b = data_of(bias);
    float* to = y->values<float>().data();
    std::vector<float> factors(channels.channels);
    for (std::size_t c = 0; c < factors.size(); ++c) {
      factors[c] = (s == nullptr ? 1.0f : s[c]) / std::sqrt(variances[c] + epsilon);
    }
    for (std::size_t o = 0; o < channels.outer; ++o) {
      if (is_alone(channels, running)) {
        std::copy_n(from + o * channels.part(), channels.part(), to + o * channels.part());
      } else {
        channels.for_each_in(o, [&](std::size_t c, std::size_t at) {
          to[at] = (from[at] - means[c]) * factors[c] + (b == nullptr ? 0.0f : b[c]);
        });
      }
      if (activation.apply != nullptr) activation.apply(to + o * channels.part(), channels.part());
    }
  };
}

/// The gradient of what batch_norm makes, by parts of channels.part() values:
/// as it is given, or through the activation behind it.
class Upward {
 public:
  Upward(const Channels& channels, const Tensor* y, const Tensor& g, const Activation& activation,
         std::vector<float>& room)
      : part_(channels.part()), y_(data_of(y)), g_(data_of(&g)), activation_(activation), room_(room) {
    if (activation_.differentiate != nullptr) room_.resize(part_);
  }
  const float* operator[](std::size_t outer) {
    const float* g = g_ + outer * part_;
    if (activation_.differentiate == nullptr) return g;
    activation_.differentiate(y_ + outer * part_, g, room_.data(), part_);
    return room_.data();
  }

 private:
  std::size_t part_;
  const float *y_, *g_;
  const Activation& activation_;
  std::vector<float>& room_;
};

/// (X, Scale, Mean, Variance, dY) -> dX, dScale, dBias; with an activation Y before dY.
Kernel prepare_batch_norm_gradient(const Preparation& p) {
  const bool activates = p.inputs() > 5;
  return [op = &p.op, x = p.input(0), scale = p.input(1), mean = p.input(2), variance = p.input(3),
          y = activates ? p.input(4) : nullptr, g = p.input(activates ? 5 : 4), dx = p.output(0),
          ds = p.output(1), db = p.output(2), epsilon = static_cast<float>(attribute(p.op, "epsilon", 1e-5)),
          running = uses_running(p.op), activation = activation_of(p.op),
          room = std::vector<float>()]() mutable {
    const Channels channels(*op, x->shape());
    Upward upward(channels, y, *g, activation, room);
    const float* from = x->values<float>().data();
    const float *means = data_of(mean), *s = data_of(scale);
    if (is_alone(channels, running)) {
      filled(ds, channels.channels);
      filled(db, channels.channels);
      if (dx == nullptr) return;
      dx->resize(DataType::float32, x->shape());
      float* to = dx->values<float>().data();
      for (std::size_t o = 0; o < channels.outer; ++o) {
        std::copy_n(upward[o], channels.part(), to + o * channels.part());
      }
      return;
    }
    std::vector<float> factors(channels.channels);
    for (std::size_t c = 0; c < factors.size(); ++c) {
      factors[c] = 1.0f / std::sqrt(variance->values<float>()[c] + epsilon);
    }
    std::vector<double> sums(channels.channels), products(channels.channels);
    for (std::size_t o = 0; o < channels.outer; ++o) {
      const float* up = upward[o];
      channels.for_each_in(o, [&, begin = o * channels.part()](std::size_t c, std::size_t at) {
        sums[c] += up[at - begin];
        products[c] += double(up[at - begin]) * (from[at] - means[c]) * factors[c];
      });
    }
    float *scales = filled(ds, channels.channels), *biases = filled(db, channels.channels);
    for (std::size_t c = 0; c < channels.channels; ++c) {
      if (scales != nullptr) scales[c] = static_cast<float>(products[c]);
      if (biases != nullptr) biases[c] = static_cast<float>(sums[c]);
      // What the batch's own mean and variance take off a value's gradient.
      sums[c] = running ? 0.0 : sums[c] / channels.each();
      products[c] = running ? 0.0 : products[c] / channels.each();
    }
    if (dx == nullptr) return;
    dx->resize(DataType::float32, x->shape());
    float* to = dx->values<float>().data();
    for (std::size_t o = 0; o < channels.outer; ++o) {
      const float* up = upward[o];
      channels.for_each_in(o, [&, begin = o * channels.part()](std::size_t c, std::size_t at) {
        const float normal = (from[at] - means[c]) * factors[c];
        const float factor = (s == nullptr ? 1.0f : s[c]) * factors[c];
        to[at] = factor *
                 (up[at - begin] - static_cast<float>(sums[c]) - normal * static_cast<float>(products[c]));
      });
    }
  };
}

void batch_norm_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append(
      {.type = "batch_norm_grad",
       .inputs = {op.inputs[0], op.inputs[1], op.outputs[3], op.outputs[4], builder.output_gradient(0)},
       .outputs = {builder.input_gradient(0), builder.input_gradient(1), builder.input_gradient(2)},
       .attributes = op.attributes});
}

}  // namespace

std::span<const OperatorDefinition> batch_norm_operators() {
  static constexpr OperatorDefinition all[] = {
      {"batch_norm",
       infer_batch_norm,
       prepare_batch_norm,
       batch_norm_gradient,
       {"(X, Scale [c], Bias [c], RunningMean [c], RunningVariance [c]) -> Y, RunningMean, "
        "RunningVariance, Mean [c], Variance [c]",
        "channels brought to mean 0 and variance 1 over a batch; Mean and Variance are this batch's; "
        "running = momentum * running + (1 - momentum) * batch; an empty Scale is 1, an empty Bias 0",
        "epsilon = 1e-5; momentum = 0.9; is_test, use_global_stats = false: true takes the running ones, "
        "which then stay; trainable_statistics = false: with true a test takes the batch's too; "
        "channels_last = false: the channels are X's last axis instead of the second"}},
      {"batch_norm_grad", infer_gradient, prepare_batch_norm_gradient, nullptr},
      {"batch_norm_act",
       infer_activated,
       prepare_batch_norm,
       nullptr,
       {"as batch_norm",
        "Y is activation(what batch_norm makes); made by a pass only (passes/batch_norm_activation.cc)",
        "those of batch_norm; activation: relu, sigmoid or tanh"}},
      {"batch_norm_act_grad",
       infer_activated,
       prepare_batch_norm_gradient,
       nullptr,
       {"(X, Scale, Mean, Variance, Y, dY) -> dX, dScale, dBias",
        "the gradient of batch_norm_act; made by a pass only", "activation"}},
  };
  return all;
}

}  // namespace fleetrun::engine
