// Operators that repeat values, blank them out, or make them from a shape.

#include <algorithm>
#include <cmath>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/axes.h"
#include "runtime/engine/operators/numbers.h"
#include "runtime/engine/operators/second_gradients.h"
#include "runtime/engine/operators/strided.h"
#include "runtime/engine/operators/typed.h"

namespace fleetrun::engine {

namespace {

/// X repeated to Out: both with as many dimensions, X's with a stride of 0 where it is repeated.
struct Repetition {
  Shape shape;
  std::vector<std::size_t> strides;
  /// What Out is called: tile joins its repeats and the dimensions that they repeat.
  Shape result;
};

Repetition tiled(const Operator& op, const Shape& x, const Shape& times) {
  const std::size_t dimensions = std::max(x.size(), times.size());
  const auto strides = strides_of(x);
  Repetition made;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const bool has_x = d + x.size() >= dimensions, has_times = d + times.size() >= dimensions;
    const std::size_t in_x = d + x.size() - dimensions;
    const std::int64_t size = has_x ? x[in_x] : 1;
    const std::int64_t repeats = has_times ? times[d + times.size() - dimensions] : 1;
    made.shape.insert(made.shape.end(), {repeats, size});
    made.strides.insert(made.strides.end(), {0, has_x ? strides[in_x] : 0});
    std::int64_t all = -1;
    if (size >= 0 && repeats >= 0 && __builtin_mul_overflow(size, repeats, &all))
      fail(op, to_string(x) + " cannot be repeated " + to_string(times) + " times");
    made.result.push_back(all);
  }
  return made;
}

Repetition expanded(const Operator& op, const Shape& x, const Shape& shape) {
  if (shape.size() < x.size()) fail(op, to_string(x) + " cannot be expanded to " + to_string(shape));
  const auto strides = strides_of(x);
  Repetition made;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool has_x = d + x.size() >= shape.size();
    const std::size_t in_x = d + x.size() - shape.size();
    const std::int64_t from = has_x ? x[in_x] : 1, wanted = shape[d] == -1 ? from : shape[d];
    if (from >= 0 && wanted >= 0 && from != 1 && from != wanted) {
      fail(op, to_string(x) + " cannot be expanded to " + to_string(shape),
           "each dimension must be the same, 1, or new at the front");
    }
    made.shape.push_back(wanted);
    made.strides.push_back(from == 1 || !has_x ? 0 : strides[in_x]);
  }
  made.result = made.shape;
  return made;
}

using Repeat = Repetition (*)(const Operator&, const Shape&, const Shape&);

/// Out's shape as far as it is known: of X and the numbers `name`.
template <Repeat kRepeat>
void infer_repeat(Inference& inference, const char* name) {
  inference.expect_inputs(1, static_cast<std::size_t>(-1));
  inference.expect_outputs(1, 1);
  const Variable& x = inference.input(0);
  const Numbers numbers(inference.op(), name);
  // -1 from an input is not -1 of a script: the size is unknown, and not the one there.
  Shape known = numbers.declared();
  Shape shape = kRepeat(inference.op(), x.shape, known).result;
  for (std::size_t d = 0; d < known.size(); ++d) {
    if (!numbers.known(d)) shape[shape.size() - known.size() + d] = -1;
  }
  inference.set_output(0, x.type, shape);
}

void infer_tile(Inference& inference) {
  infer_repeat<tiled>(inference, "repeat_times");
}
void infer_expand(Inference& inference) {
  infer_repeat<expanded>(inference, "shape");
}

void repeat(const Tensor& x, const Repetition& repetition, Tensor& out) {
  out.resize(x.type(), repetition.result);
  gather_view(x, 0, repetition.shape, repetition.strides, out);
}

void add_repeats(const Tensor& g, const Repetition& repetition, const Shape& x, Tensor& dx) {
  dx.resize(g.type(), x);
  add_to_view(g, dx, 0, repetition.shape, repetition.strides);
}

const char* numbers_of(const Operator& op) {
  return op.type.starts_with("tile") ? "repeat_times" : "shape";
}

template <Repeat kRepeat>
Kernel prepare_repeat(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0), inputs = inputs_of(p),
          numbers = Numbers(p.op, numbers_of(p.op))]() mutable {
    repeat(*x, kRepeat(*op, x->shape(), numbers.read(inputs)), *out);
  };
}

/// (X, numbers …, dOut) -> dX
template <Repeat kRepeat>
Kernel prepare_repeat_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), g = p.input(p.inputs() - 1), dx = p.output(0), inputs = inputs_of(p),
          numbers = Numbers(p.op, numbers_of(p.op))]() mutable {
    add_repeats(*g, kRepeat(*op, x->shape(), numbers.read(inputs)), x->shape(), *dx);
  };
}

/// (inputs …, dOut) -> dX
void append_gradient(GradientBuilder& builder) {
  std::vector<std::string> inputs = builder.op().inputs;
  inputs.push_back(builder.output_gradient(0));
  builder.append({.type = builder.op().type + "_grad",
                  .inputs = std::move(inputs),
                  .outputs = {builder.input_gradient(0)},
                  .attributes = builder.op().attributes});
}

void infer_expand_as(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  const Variable& x = inference.input(0);
  const Shape wanted = inference.input(1).shape;
  inference.set_output(0, x.type, expanded(inference.op(), x.shape, wanted).result);
}

Kernel prepare_expand_as(const Preparation& p) {
  return [op = &p.op, x = p.input(0), y = p.input(1), out = p.output(0)] {
    repeat(*x, expanded(*op, x->shape(), y->shape()), *out);
  };
}

/// (X, Y, dOut) -> dX
Kernel prepare_expand_as_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), y = p.input(1), g = p.input(2), dx = p.output(0)] {
    add_repeats(*g, expanded(*op, x->shape(), y->shape()), x->shape(), *dx);
  };
}

void infer_triangle(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const Variable x = inference.input(0);
  if (x.shape.size() < 2) inference.fail("the input needs two dimensions or more");
  inference.set_output(0, x.type, x.shape, x.lod_level);
}

Kernel prepare_triangle(const Preparation& p) {
  return [x = p.input(0), out = p.output(0), diagonal = attribute(p.op, "diagonal", std::int64_t{0}),
          lower = p.op.type == "tril"] {
    out->resize(x->type(), x->shape());
    out->offsets = x->offsets;
    const std::size_t dimensions = x->shape().size();
    const std::int64_t rows = x->shape()[dimensions - 2], columns = x->shape()[dimensions - 1];
    with_type(x->type(), [&]<class T>(T) {
      const auto from = x->values<T>();
      const auto to = out->values<T>();
      for (std::size_t i = 0; i < from.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const std::int64_t above = at % columns - (at / columns) % rows - diagonal;
        to[i] = (lower ? above <= 0 : above >= 0) ? from[i] : T{};
      }
    });
  };
}

void triangle_gradient(GradientBuilder& builder) {
  builder.append({.type = builder.op().type,
                  .inputs = {builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = builder.op().attributes});
}

void infer_shape(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const auto dimensions = static_cast<std::int64_t>(inference.input(0).shape.size());
  inference.set_output(0, DataType::int32, {dimensions});
}

Kernel prepare_shape(const Preparation& p) {
  return [x = p.input(0), out = p.output(0)] {
    out->resize(DataType::int32, {static_cast<std::int64_t>(x->shape().size())});
    const auto to = out->values<std::int32_t>();
    std::transform(x->shape().begin(), x->shape().end(), to.begin(),
                   [](std::int64_t size) { return static_cast<std::int32_t>(size); });
  };
}

DataType made_type(const Operator& op, const char* fallback) {
  return parse_data_type(attribute(op, "dtype", std::string(fallback)));
}

std::int64_t steps_of(const Operator& op, double start, double end, double step) {
  if (step == 0.0) fail(op, "the step is 0");
  const double steps = std::ceil((end - start) / step);
  constexpr double kMax = 1e15;
  if (!(steps < kMax)) fail(op, "there is no end to its values, or one of its numbers is not finite");
  return steps > 0.0 ? static_cast<std::int64_t>(steps) : 0;
}

void infer_range(Inference& inference) {
  const Operator& op = inference.op();
  inference.expect_inputs(0, 3);
  inference.expect_outputs(1, 1);
  std::int64_t size = -1;
  if (op.attributes.contains("values")) {
    const auto values = attribute<std::vector<double>>(op, "values");
    if (values.size() != 3) inference.fail("values are start, end and step");
    size = steps_of(op, values[0], values[1], values[2]);
  } else {
    const Numbers bounds(op, "bounds");
    const auto& known = bounds.declared();
    if (known.size() != 3) inference.fail("bounds are start, end and step");
    if (bounds.all_known()) size = steps_of(op, double(known[0]), double(known[1]), double(known[2]));
  }
  inference.set_output(0, made_type(op, "int64"), {size});
}

template <class Bound>
void write_range(const Operator& op, Bound start, Bound end, Bound step, Tensor& out) {
  const std::int64_t size = steps_of(op, double(start), double(end), double(step));
  out.resize(made_type(op, "int64"), {size});
  with_type(out.type(), [&]<class T>(T) {
    std::int64_t k = 0;
    for (T& value : out.values<T>()) value = static_cast<T>(start + static_cast<Bound>(k++) * step);
  });
}

Kernel prepare_range(const Preparation& p) {
  if (p.op.attributes.contains("values")) {
    return [op = &p.op, out = p.output(0), values = attribute<std::vector<double>>(p.op, "values")] {
      write_range(*op, values[0], values[1], values[2], *out);
    };
  }
  return [op = &p.op, out = p.output(0), inputs = inputs_of(p), bounds = Numbers(p.op, "bounds")]() mutable {
    const auto& now = bounds.read(inputs);
    write_range(*op, now[0], now[1], now[2], *out);
  };
}

void infer_fill_dynamic(Inference& inference) {
  inference.expect_outputs(1, 1);
  inference.set_output(0, made_type(inference.op(), "float32"), Numbers(inference.op(), "shape").declared());
}

Kernel prepare_fill_dynamic(const Preparation& p) {
  return [op = &p.op, out = p.output(0), inputs = inputs_of(p), shape = Numbers(p.op, "shape"),
          value = attribute(p.op, "value", 0.0)]() mutable {
    out->resize(made_type(*op, "float32"), shape.read(inputs));
    with_type(out->type(), [&]<class T>(T) {
      for (T& each : out->values<T>()) each = static_cast<T>(value);
    });
  };
}

}  // namespace

std::span<const OperatorDefinition> repeat_operators() {
  static constexpr OperatorDefinition all[] = {
      {"tile",
       infer_tile,
       prepare_repeat<tiled>,
       append_gradient,
       {"(X, numbers ...) -> Out", "X repeated", "repeat_times: one for each dimension, from the last one"}},
      {"tile_grad", infer_gradient, prepare_repeat_gradient<tiled>, gradient_of_linear},
      {"expand",
       infer_expand,
       prepare_repeat<expanded>,
       append_gradient,
       {"(X, numbers ...) -> Out", "dimensions of 1 repeated to a shape", "shape: -1 keeps that dimension"}},
      {"expand_grad", infer_gradient, prepare_repeat_gradient<expanded>, gradient_of_linear},
      {"expand_as",
       infer_expand_as,
       prepare_expand_as,
       append_gradient,
       {"(X, Y) -> Out", "X expanded to Y's shape; Y gets no gradient"}},
      {"expand_as_grad", infer_gradient, prepare_expand_as_gradient, gradient_of_linear},
      {"tril",
       infer_triangle,
       prepare_triangle,
       triangle_gradient,
       {"(X [.., N, M]) -> Out", "0 above a diagonal", "diagonal = 0"}},
      {"triu",
       infer_triangle,
       prepare_triangle,
       triangle_gradient,
       {"(X [.., N, M]) -> Out", "0 below a diagonal", "diagonal = 0"}},
      {"shape",
       infer_shape,
       prepare_shape,
       nullptr,
       {"(X) -> Out int32 [dimensions]", "the dimensions of X"}},
      {"range",
       infer_range,
       prepare_range,
       nullptr,
       {"(numbers ...) -> Out [n]", "numbers from a start up to an end",
        "dtype = int64; bounds: start, end, step; or values: the same three as floating point, none of "
        "them from an input"}},
      {"fill_dynamic",
       infer_fill_dynamic,
       prepare_fill_dynamic,
       nullptr,
       {"(numbers ...) -> Out", "a tensor of one value", "value = 0; dtype = float32; shape"}},
  };
  return all;
}

}  // namespace fleetrun::engine
