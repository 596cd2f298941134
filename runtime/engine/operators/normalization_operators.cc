// Values of a row brought to mean 0 and variance 1, float32, and prelu,
// which has a parameter for each channel.
//
// Variances are of the whole (divided by n). Sources: Ba, Kiros and Hinton, 2016; He et al., Delving deep
// into rectifiers, 2015.

#include <algorithm>
#include <cmath>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/axes.h"
#include "runtime/engine/operators/channels.h"

namespace fleetrun::engine {

namespace {

// Layer norm.

std::size_t first_axis(const Operator& op, std::size_t dimensions) {
  return axis_of(op, attribute(op, "begin_norm_axis", std::int64_t{1}), dimensions);
}

void infer_layer_norm(Inference& inference) {
  inference.expect_inputs(1, 3);
  inference.expect_outputs(3, 3);
  inference.expect_type(0, DataType::float32);
  const Variable& x = inference.input(0);
  const Shape shape = x.shape;
  const std::size_t axis = first_axis(inference.op(), shape.size());
  const std::int64_t width = count(std::span(shape).subspan(axis));
  const std::int64_t rows = count(std::span(shape).first(axis));
  expect_size(inference, 1, width, "scale");
  expect_size(inference, 2, width, "bias");
  inference.set_output(0, DataType::float32, shape, x.lod_level);
  inference.set_output(1, DataType::float32, {rows});
  inference.set_output(2, DataType::float32, {rows});
}

struct Moments {
  float mean = 0.0f, variance = 0.0f;
};

Moments moments_of(const float* x, std::size_t size) {
  double sum = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < size; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(size);
  for (std::size_t i = 0; i < size; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {static_cast<float>(mean), static_cast<float>(squares / static_cast<double>(size))};
}

Kernel prepare_layer_norm(const Preparation& p) {
  return
      [op = &p.op, x = p.input(0), scale = p.input(1), bias = p.input(2), y = p.output(0), mean = p.output(1),
       variance = p.output(2), epsilon = static_cast<float>(attribute(p.op, "epsilon", 1e-5))] {
        const std::size_t axis = first_axis(*op, x->shape().size());
        const std::size_t rows = product(x->shape(), 0, axis);
        const std::size_t width = product(x->shape(), axis, x->shape().size());
        check_size(*op, scale, width, "scale");
        check_size(*op, bias, width, "bias");
        y->resize(DataType::float32, x->shape());
        y->offsets = x->offsets;
        float* means = filled(mean, rows);
        float* variances = filled(variance, rows);
        const float *s = data_of(scale), *b = data_of(bias);
        for (std::size_t r = 0; r < rows; ++r) {
          const float* from = x->values<float>().data() + r * width;
          float* to = y->values<float>().data() + r * width;
          const Moments moments = moments_of(from, width);
          means[r] = moments.mean;
          variances[r] = moments.variance;
          const float factor = 1.0f / std::sqrt(moments.variance + epsilon);
          for (std::size_t i = 0; i < width; ++i) {
            const float normal = (from[i] - moments.mean) * factor;
            to[i] = normal * (s == nullptr ? 1.0f : s[i]) + (b == nullptr ? 0.0f : b[i]);
          }
        }
      };
}

/// (X, Scale, Mean, Variance, dY) -> dX, dScale, dBias
Kernel prepare_layer_norm_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), scale = p.input(1), mean = p.input(2), variance = p.input(3),
          g = p.input(4), dx = p.output(0), ds = p.output(1), db = p.output(2),
          epsilon = static_cast<float>(attribute(p.op, "epsilon", 1e-5))] {
    const std::size_t axis = first_axis(*op, x->shape().size());
    const std::size_t rows = product(x->shape(), 0, axis);
    const std::size_t width = product(x->shape(), axis, x->shape().size());
    if (dx != nullptr) dx->resize(DataType::float32, x->shape());
    float *scales = filled(ds, width), *biases = filled(db, width);
    const float* s = data_of(scale);
    for (std::size_t r = 0; r < rows; ++r) {
      const float *from = x->values<float>().data() + r * width, *up = g->values<float>().data() + r * width;
      const float middle = mean->values<float>()[r];
      const float factor = 1.0f / std::sqrt(variance->values<float>()[r] + epsilon);
      double sum = 0.0, product_sum = 0.0;
      for (std::size_t i = 0; i < width; ++i) {
        const float normal = (from[i] - middle) * factor, weighted = up[i] * (s == nullptr ? 1.0f : s[i]);
        sum += weighted;
        product_sum += weighted * normal;
        if (scales != nullptr) scales[i] += up[i] * normal;
        if (biases != nullptr) biases[i] += up[i];
      }
      if (dx == nullptr) continue;
      float* to = dx->values<float>().data() + r * width;
      const auto shift = static_cast<float>(sum / double(width)),
                 slope = static_cast<float>(product_sum / double(width));
      for (std::size_t i = 0; i < width; ++i) {
        const float normal = (from[i] - middle) * factor, weighted = up[i] * (s == nullptr ? 1.0f : s[i]);
        to[i] = factor * (weighted - shift - normal * slope);
      }
    }
  };
}

void layer_norm_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append(
      {.type = "layer_norm_grad",
       .inputs = {op.inputs[0], op.inputs.size() > 1 ? op.inputs[1] : std::string(), op.outputs[1],
                  op.outputs[2], builder.output_gradient(0)},
       .outputs = {builder.input_gradient(0), builder.input_gradient(1), builder.input_gradient(2)},
       .attributes = op.attributes});
}

// Prelu.

/// X as [outer, alphas, inner].
Channels alphas_of(const Operator& op, const Shape& shape) {
  const std::string mode = attribute(op, "mode", std::string("all"));
  if (mode == "channel") return {op, shape};
  Channels channels(Operator{}, Shape{1, 1});
  const std::size_t size = product(shape, 0, shape.size());
  const std::size_t example = product(shape, 1, shape.size());
  channels.outer = mode == "element" ? static_cast<std::size_t>(shape[0]) : 1;
  channels.channels = mode == "element" ? example : 1;
  channels.inner = mode == "element" ? 1 : size;
  return channels;
}

void infer_prelu(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  const Variable& x = inference.input(0);
  const std::string mode = attribute(inference.op(), "mode", std::string("all"));
  if (mode != "all" && mode != "channel" && mode != "element") {
    inference.fail("there is no mode '" + mode + "'", "use all, channel or element");
  }
  if (x.shape.empty()) inference.fail("the input has no dimensions");
  const std::int64_t alphas = mode == "all"       ? 1
                              : mode == "channel" ? channel_count(inference, x.shape)
                                                  : count(std::span(x.shape).subspan(1));
  expect_size(inference, 1, alphas, "weight");
  inference.set_output(0, DataType::float32, x.shape, x.lod_level);
}

Kernel prepare_prelu(const Preparation& p) {
  return [op = &p.op, x = p.input(0), alpha = p.input(1), out = p.output(0)] {
    out->resize(DataType::float32, x->shape());
    out->offsets = x->offsets;
    const float *from = x->values<float>().data(), *slopes = data_of(alpha);
    float* to = out->values<float>().data();
    const Channels channels = alphas_of(*op, x->shape());
    check_size(*op, alpha, channels.channels, "weight");
    channels.for_each(
        [=](std::size_t c, std::size_t at) { to[at] = from[at] > 0.0f ? from[at] : slopes[c] * from[at]; });
  };
}

/// (X, Alpha, dOut) -> dX, dAlpha
Kernel prepare_prelu_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), alpha = p.input(1), g = p.input(2), dx = p.output(0),
          da = p.output(1)] {
    if (dx != nullptr) dx->resize(DataType::float32, x->shape());
    if (da != nullptr) {
      filled(da, alpha->size());
      da->resize(DataType::float32, alpha->shape());
    }
    const float *from = x->values<float>().data(), *up = g->values<float>().data(), *slopes = data_of(alpha);
    float* to = dx == nullptr ? nullptr : dx->values<float>().data();
    float* to_slopes = da == nullptr ? nullptr : da->values<float>().data();
    alphas_of(*op, x->shape()).for_each([=](std::size_t c, std::size_t at) {
      const bool positive = from[at] > 0.0f;
      if (to != nullptr) to[at] = positive ? up[at] : slopes[c] * up[at];
      if (to_slopes != nullptr && !positive) to_slopes[c] += from[at] * up[at];
    });
  };
}

void prelu_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append({.type = "prelu_grad",
                  .inputs = {op.inputs[0], op.inputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0), builder.input_gradient(1)},
                  .attributes = op.attributes});
}

}  // namespace

std::span<const OperatorDefinition> normalization_operators() {
  static constexpr OperatorDefinition all[] = {
      {"layer_norm",
       infer_layer_norm,
       prepare_layer_norm,
       layer_norm_gradient,
       {"(X, Scale [width] optional, Bias [width] optional) -> Y, Mean [rows], Variance [rows]",
        "rows brought to mean 0 and variance 1, times Scale, plus Bias",
        "begin_norm_axis = 1: that axis and those behind it are a row; epsilon = 1e-5"}},
      {"layer_norm_grad", infer_gradient, prepare_layer_norm_gradient, nullptr},
      {"prelu",
       infer_prelu,
       prepare_prelu,
       prelu_gradient,
       {"(X, Alpha) -> Out", "x where it is positive, else alpha * x",
        "mode: `all` (one alpha), `channel` (second axis; the last with channels_last) or `element` (one "
        "for each value of an example)"}},
      {"prelu_grad", infer_gradient, prepare_prelu_gradient, nullptr},
  };
  return all;
}

}  // namespace fleetrun::engine
