// Convolutions of images and sequences, float32, each a matrix product over the windows laid side by side.
//
// Source of the layout: Chellapilla, Puri and Simard, High performance convolutional neural networks for
// document processing, 2006.

#include <algorithm>

#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/matrix_product.h"
#include "runtime/engine/operators/second_gradients.h"
#include "runtime/engine/operators/vector_math.h"
#include "runtime/engine/operators/window.h"

namespace fleetrun::engine {

namespace {

Window filter_window(const Operator& op, const Shape& filter) {
  return window_of(op, std::span(filter).subspan(2));
}

void infer_convolution(Inference& inference) {
  inference.expect_inputs(2, 3);
  inference.expect_outputs(1, 1);
  for (std::size_t i = 0; i < inference.op().inputs.size(); ++i) inference.expect_type(i, DataType::float32);
  const Shape& x = inference.input(0).shape;
  const Shape& filter = inference.input(1).shape;
  const auto groups = attribute(inference.op(), "groups", std::int64_t{1});
  if (count(filter) < 1) inference.fail("the sizes of the filter must be known, and 1 or more");
  if ((x.size() != 3 && x.size() != 4) || filter.size() != x.size()) {
    inference.fail(
        "the input needs the shape [n, channels, wide] or [n, channels, high, wide], and the filter as many");
  }
  if (groups < 1 || filter[0] % groups != 0) {
    inference.fail("the filters do not divide into " + std::to_string(groups) + " groups");
  }
  if (x[1] != filter[1] * groups) {
    inference.fail("the input has not " + std::to_string(filter[1] * groups) +
                   " channels, the filter's second dimension times " + std::to_string(groups) + " groups");
  }
  if (inference.op().inputs.size() == 3 && inference.input(2).shape != Shape{filter[0]}) {
    inference.fail("the bias must have the shape " + to_string(Shape{filter[0]}));
  }
  const Shape shape = filter_window(inference.op(), filter).places(x, filter[0]);
  if (std::count(shape.begin() + 2, shape.end(), 0) > 0)
    inference.fail("the filter is larger than the padded input");
  inference.set_output(0, DataType::float32, shape);
}

/// One convolution with known sizes: X's windows as the columns of a matrix, group by group.
class Windows {
 public:
  Windows(const Operator& op, const Tensor& x, const Tensor& filter)
      : window_(filter_window(op, filter.shape())),
        x_(x.shape()),
        shape_(window_.places(x.shape(), filter.shape()[0])),
        out_(shape_),
        groups_(static_cast<std::size_t>(attribute(op, "groups", std::int64_t{1}))) {
    if (x.shape()[1] != filter.shape()[1] * attribute(op, "groups", std::int64_t{1})) {
      fail(op, "the input is " + to_string(x.shape()) + ", the filter " + to_string(filter.shape()));
    }
    if (out_.plane() == 0 && x_.examples > 0) {
      fail(op, "the filter " + to_string(filter.shape()) + " is larger than the padded input " +
                   to_string(x.shape()));
    }
  }

  const Shape& shape() const noexcept { return shape_; }
  std::size_t examples() const noexcept { return x_.examples; }
  std::size_t groups() const noexcept { return groups_; }
  std::size_t filters() const noexcept { return out_.channels / groups_; }
  std::size_t positions() const noexcept { return out_.plane(); }
  std::size_t patch() const noexcept {
    return channels() * static_cast<std::size_t>(window_.high.kernel * window_.wide.kernel);
  }
  std::size_t x_at(std::size_t example, std::size_t group) const noexcept {
    return (example * groups_ + group) * channels() * x_.plane();
  }
  std::size_t out_at(std::size_t example, std::size_t group) const noexcept {
    return (example * groups_ + group) * filters() * positions();
  }

  /// columns[patch, positions] from the image `x` of one group.
  void lay_out(const float* x, float* columns) const {
    for_each_run(
        [&](std::size_t column, std::int64_t from, std::int64_t lead, std::int64_t run, std::int64_t rest) {
          float* to = std::fill_n(columns + column, lead, 0.0f);
          for (std::int64_t i = 0; i < run; ++i) to[i] = x[from + i * window_.wide.stride];
          std::fill_n(to + run, rest, 0.0f);
        });
  }
  /// The other way: adds the columns to the image.
  void add_back(const float* columns, float* x) const {
    for_each_run(
        [&](std::size_t column, std::int64_t from, std::int64_t lead, std::int64_t run, std::int64_t) {
          const float* source = columns + column + lead;
          for (std::int64_t i = 0; i < run; ++i) x[from + i * window_.wide.stride] += source[i];
        });
  }

 private:
  std::size_t channels() const noexcept { return x_.channels / groups_; }

  /// body(column, from, lead, run, rest) for every row of outputs that a weight of the filter makes: `lead`
  /// outputs before the image's first column, `run` from x[from] on, `rest` behind its last.
  template <class Body>
  void for_each_run(const Body& body) const {
    const auto high = static_cast<std::int64_t>(x_.high), wide = static_cast<std::int64_t>(x_.wide);
    const auto rows = static_cast<std::int64_t>(out_.high), columns = static_cast<std::int64_t>(out_.wide);
    const std::int64_t stride = window_.wide.stride;
    std::size_t column = 0;
    for (std::size_t c = 0; c < channels(); ++c) {
      for (std::int64_t i = 0; i < window_.high.kernel; ++i) {
        for (std::int64_t j = 0; j < window_.wide.kernel; ++j) {
          const std::int64_t first = window_.wide.start(0) + j * window_.wide.dilation;
          const std::int64_t lead = std::clamp((-first + stride - 1) / stride, std::int64_t{0}, columns);
          const std::int64_t end = first < wide ? (wide - first + stride - 1) / stride : 0;
          const std::int64_t run = std::max<std::int64_t>(std::min(end, columns) - lead, 0);
          for (std::int64_t row = 0; row < rows; ++row, column += out_.wide) {
            const std::int64_t y = window_.high.start(row) + i * window_.high.dilation;
            const bool inside = y >= 0 && y < high;
            const std::int64_t from =
                (static_cast<std::int64_t>(c) * high + y) * wide + first + lead * stride;
            body(column, from, lead, inside ? run : 0, columns - lead - (inside ? run : 0));
          }
        }
      }
    }
  }

  Window window_;
  ImageSize x_;
  Shape shape_;
  ImageSize out_;
  std::size_t groups_;
};

void add_bias(float* out, const float* bias, std::size_t filters, std::size_t positions) {
  vectorized([=]() __attribute__((always_inline)) {
    for (std::size_t f = 0; f < filters; ++f) {
      for (std::size_t p = 0; p < positions; ++p) out[f * positions + p] += bias[f];
    }
  });
}

Kernel prepare_convolution(const Preparation& p) {
  return [op = &p.op, x = p.input(0), filter = p.input(1), bias = p.input(2), out = p.output(0),
          columns = std::vector<float>(), plan = PlanByShape<Windows, 2>()]() mutable {
    const Windows& windows = plan.of(*op, *x, *filter);
    out->resize(DataType::float32, windows.shape());
    columns.resize(windows.patch() * windows.positions());
    const float* from = x->values<float>().data();
    float* to = out->values<float>().data();
    const std::size_t filters = windows.filters(), positions = windows.positions();
    for (std::size_t e = 0; e < windows.examples(); ++e) {
      for (std::size_t g = 0; g < windows.groups(); ++g) {
        windows.lay_out(from + windows.x_at(e, g), columns.data());
        multiply({.rows = filters, .columns = positions, .inner = windows.patch()},
                 filter->values<float>().data() + g * filters * windows.patch(), columns.data(),
                 to + windows.out_at(e, g));
      }
      if (bias == nullptr) continue;
      add_bias(to + windows.out_at(e, 0), bias->values<float>().data(), filters * windows.groups(),
               positions);
    }
  };
}

/// bias[f] += Σ of its outputs.
void add_sums(const float* gradient, float* bias, std::size_t filters, std::size_t positions) {
  vectorized([=]() __attribute__((always_inline)) {
    for (std::size_t f = 0; f < filters; ++f) bias[f] += sum_of(gradient + f * positions, positions);
  });
}

float* zeros(Tensor* tensor, const Shape& shape) {
  if (tensor == nullptr) return nullptr;
  tensor->resize(DataType::float32, shape);
  const auto values = tensor->values<float>();
  std::fill(values.begin(), values.end(), 0.0f);
  return values.data();
}

/// (X, Filter, dOut) -> dX, dFilter, dBias
Kernel prepare_convolution_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), filter = p.input(1), g = p.input(2), dx = p.output(0), df = p.output(1),
          db = p.output(2), columns = std::vector<float>(), plan = PlanByShape<Windows, 2>(),
          bias_shape = Shape(1)]() mutable {
    const Windows& windows = plan.of(*op, *x, *filter);
    const std::size_t filters = windows.filters(), positions = windows.positions(), patch = windows.patch();
    columns.resize(patch * positions);
    float* to_x = zeros(dx, x->shape());
    float* to_filter = zeros(df, filter->shape());
    bias_shape[0] = filter->shape()[0];
    float* to_bias = zeros(db, bias_shape);
    for (std::size_t e = 0; e < windows.examples(); ++e) {
      for (std::size_t k = 0; k < windows.groups(); ++k) {
        const float* gradient = g->values<float>().data() + windows.out_at(e, k);
        if (to_filter != nullptr) {
          windows.lay_out(x->values<float>().data() + windows.x_at(e, k), columns.data());
          multiply({.transpose_b = true,
                    .rows = filters,
                    .columns = patch,
                    .inner = positions,
                    .accumulate = true},
                   gradient, columns.data(), to_filter + k * filters * patch);
        }
        if (to_x != nullptr) {
          multiply({.transpose_a = true, .rows = patch, .columns = positions, .inner = filters},
                   filter->values<float>().data() + k * filters * patch, gradient, columns.data());
          windows.add_back(columns.data(), to_x + windows.x_at(e, k));
        }
        if (to_bias != nullptr) add_sums(gradient, to_bias + k * filters, filters, positions);
      }
    }
  };
}

void convolution_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append(
      {.type = "conv2d_grad",
       .inputs = {op.inputs[0], op.inputs[1], builder.output_gradient(0)},
       .outputs = {builder.input_gradient(0), builder.input_gradient(1), builder.input_gradient(2)},
       .attributes = op.attributes});
}

// Transposed: what the gradient of a convolution by its input is; X are the outputs of that convolution.

Shape transposed_shape(const Operator& op, const Shape& x, const Shape& filter) {
  const Window window = filter_window(op, filter);
  const auto more = attribute(op, "output_padding", std::vector<std::int64_t>(x.size() - 2, 0));
  Shape shape = {x[0], filter[1] * attribute(op, "groups", std::int64_t{1})};
  for (std::size_t i = 2; i < x.size(); ++i) {
    const WindowAxis& axis = i + 1 == x.size() ? window.wide : window.high;
    const std::int64_t covered = axis.dilation * (axis.kernel - 1) + 1 - axis.before - axis.after;
    shape.push_back(x[i] < 0 ? -1 : (x[i] - 1) * axis.stride + covered + more.at(i - 2));
  }
  return shape;
}

void infer_transposed(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  for (std::size_t i = 0; i < 2; ++i) inference.expect_type(i, DataType::float32);
  const Operator& op = inference.op();
  const Shape x = inference.input(0).shape, filter = inference.input(1).shape;
  const auto groups = attribute(op, "groups", std::int64_t{1});
  if (count(filter) < 1) inference.fail("the sizes of the filter must be known, and 1 or more");
  if ((x.size() != 3 && x.size() != 4) || filter.size() != x.size()) {
    inference.fail(
        "the input needs the shape [n, channels, wide] or [n, channels, high, wide], and the filter as many");
  }
  if (groups < 1 || filter[0] % groups != 0 || x[1] != filter[0])
    inference.fail("the input's channels are not those of the filter's first axis, or no " +
                   std::to_string(groups) + " groups");
  const Window window = filter_window(op, filter);
  const auto more = attribute(op, "output_padding", std::vector<std::int64_t>(x.size() - 2, 0));
  for (std::size_t i = 0; i + 2 < x.size(); ++i) {
    const WindowAxis& axis = i + 3 == x.size() ? window.wide : window.high;
    if (more.size() != x.size() - 2 || more[i] < 0 || more[i] >= axis.stride)
      inference.fail("each output_padding must be from 0 up to the stride");
  }
  const Shape shape = transposed_shape(op, x, filter);
  if (std::any_of(shape.begin() + 2, shape.end(), [](std::int64_t size) { return size < -1 || size == 0; }))
    inference.fail("the padding leaves no output");
  inference.set_output(0, DataType::float32, shape);
}

Kernel prepare_transposed(const Preparation& p) {
  return [op = &p.op, x = p.input(0), filter = p.input(1), out = p.output(0), columns = std::vector<float>(),
          plan = PlanByShape<Windows, 2>()]() mutable {
    float* to = zeros(out, transposed_shape(*op, x->shape(), filter->shape()));
    const Windows& windows = plan.of(*op, *out, *filter);
    const std::size_t filters = windows.filters(), patch = windows.patch();
    columns.resize(patch * windows.positions());
    for (std::size_t e = 0; e < windows.examples(); ++e) {
      for (std::size_t g = 0; g < windows.groups(); ++g) {
        multiply({.transpose_a = true, .rows = patch, .columns = windows.positions(), .inner = filters},
                 filter->values<float>().data() + g * filters * patch,
                 x->values<float>().data() + windows.out_at(e, g), columns.data());
        windows.add_back(columns.data(), to + windows.x_at(e, g));
      }
    }
  };
}

/// (X, Filter, dOut) -> dX, dFilter
Kernel prepare_transposed_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), filter = p.input(1), g = p.input(2), dx = p.output(0), df = p.output(1),
          columns = std::vector<float>(), plan = PlanByShape<Windows, 2>()]() mutable {
    const Windows& windows = plan.of(*op, *g, *filter);
    const std::size_t filters = windows.filters(), positions = windows.positions(), patch = windows.patch();
    columns.resize(patch * positions);
    float* to_x = zeros(dx, x->shape());
    float* to_filter = zeros(df, filter->shape());
    for (std::size_t e = 0; e < windows.examples(); ++e) {
      for (std::size_t k = 0; k < windows.groups(); ++k) {
        windows.lay_out(g->values<float>().data() + windows.x_at(e, k), columns.data());
        if (to_x != nullptr) {
          multiply({.rows = filters, .columns = positions, .inner = patch},
                   filter->values<float>().data() + k * filters * patch, columns.data(),
                   to_x + windows.out_at(e, k));
        }
        if (to_filter != nullptr) {
          multiply({.transpose_b = true,
                    .rows = filters,
                    .columns = patch,
                    .inner = positions,
                    .accumulate = true},
                   x->values<float>().data() + windows.out_at(e, k), columns.data(),
                   to_filter + k * filters * patch);
        }
      }
    }
  };
}

void transposed_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append({.type = "conv2d_transpose_grad",
                  .inputs = {op.inputs[0], op.inputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0), builder.input_gradient(1)},
                  .attributes = op.attributes});
}

}  // namespace

std::span<const OperatorDefinition> convolution_operators() {
  static constexpr OperatorDefinition all[] = {
      {"conv2d",
       infer_convolution,
       prepare_convolution,
       convolution_gradient,
       {"(X [n, c, h, w] or [n, c, w], Filter [o, c / groups, kh, kw] or [o, c / groups, kw], Bias [o] "
        "optional) -> Out [n, o, h', w'] or [n, o, w']",
        "convolution",
        "strides, dilations = 1 for each axis; paddings = 0 before and after each axis; groups = 1"}},
      {"conv2d_grad", infer_gradient, prepare_convolution_gradient, gradient_of_product},
      {"conv2d_transpose",
       infer_transposed,
       prepare_transposed,
       transposed_gradient,
       {"(X [n, i, h, w] or [n, i, w], Filter [i, c / groups, kh, kw] or [i, c / groups, kw]) -> Out [n, c, "
        "h', w'] or [n, c, w']",
        "the transposed convolution: the gradient of conv2d by its input",
        "strides, dilations = 1 for each axis; paddings = 0 before and after each axis; groups = 1; "
        "output_padding = 0 for each axis"}},
      {"conv2d_transpose_grad", infer_gradient, prepare_transposed_gradient, gradient_of_product},
  };
  return all;
}

}  // namespace fleetrun::engine
