// Operators that change a tensor's shape or the order of its values. A negative axis counts from the end.
// Offsets stay when the first dimension does. The gradient of the first four is `reshape_like`.

#include <algorithm>
#include <cstring>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/axes.h"
#include "runtime/engine/operators/numbers.h"
#include "runtime/engine/operators/second_gradients.h"
#include "runtime/engine/operators/strided.h"

namespace fleetrun::engine {

namespace {

using Reshaping = Shape (*)(const Operator&, const Shape&);

Shape reshaped(const Operator& op, const Shape& x, Shape shape) {
  std::int64_t known = 1;
  std::size_t inferred = shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && d < x.size())
      shape[d] = x[d];
    else if (shape[d] == -1 && inferred == shape.size())
      inferred = d;
    else if (shape[d] < 0)
      fail(op, "the shape " + to_string(shape) + " has more than one -1");
  }
  bool unknown = false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d == inferred) continue;
    if (shape[d] < 0)
      unknown = true;
    else if (__builtin_mul_overflow(known, shape[d], &known))
      fail(op, to_string(x) + " cannot become " + to_string(shape));
  }
  const std::int64_t size = count(x);
  if (size < 0 || unknown) {
    if (inferred < shape.size()) shape[inferred] = -1;
    return shape;
  }
  if (inferred < shape.size()) shape[inferred] = known == 0 ? 0 : size / known;
  if (count(shape) != size) fail(op, to_string(x) + " cannot become " + to_string(shape));
  return shape;
}

Shape flattened(const Operator& op, const Shape& x) {
  if (x.empty()) return {1};
  const std::size_t start = axis_of(op, attribute(op, "start_axis", std::int64_t{0}), x.size());
  const std::size_t stop = axis_of(op, attribute(op, "stop_axis", std::int64_t{-1}), x.size());
  if (start > stop) fail(op, "start_axis is greater than stop_axis");
  Shape shape(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(start));
  shape.push_back(count(std::span(x).subspan(start, stop - start + 1)));
  shape.insert(shape.end(), x.begin() + static_cast<std::ptrdiff_t>(stop) + 1, x.end());
  return shape;
}

Shape squeezed(const Operator& op, const Shape& x) {
  const auto axes = attribute(op, "axes", std::vector<std::int64_t>());
  const bool picks = attribute(op, "picks", false);
  std::vector<bool> dropped(x.size(), axes.empty());
  for (const std::int64_t axis : axes) dropped[axis_of(op, axis, x.size())] = true;
  Shape shape;
  for (std::size_t d = 0; d < x.size(); ++d) {
    if (dropped[d] && picks && x[d] >= 0 && x[d] != 1)
      fail(op, "what is picked along axis " + std::to_string(d) + " lies outside of it");
    if (!dropped[d] || (x[d] != 1 && !picks)) shape.push_back(x[d]);
  }
  return shape;
}

Shape unsqueezed(const Operator& op, const Shape& x) {
  Shape shape = x;
  for (const std::int64_t axis : attribute<std::vector<std::int64_t>>(op, "axes")) {
    const std::size_t place = axis_of(op, axis, shape.size() + 1);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(place), 1);
  }
  return shape;
}

void copy_values(const Tensor& x, Tensor& out) {
  if (x.bytes() > 0) std::memcpy(out.data(), x.data(), x.bytes());
}

bool keeps_first(const Shape& x, const Shape& shape) {
  return !shape.empty() && !x.empty() && shape[0] == x[0];
}

void infer_reshape(Inference& inference) {
  inference.expect_inputs(1, static_cast<std::size_t>(-1));
  inference.expect_outputs(1, 1);
  const Variable& x = inference.input(0);
  const Numbers sizes(inference.op(), "shape");
  Shape shape = sizes.declared();
  if (sizes.all_known()) {
    shape = reshaped(inference.op(), x.shape, shape);
  } else {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (sizes.known(d) && shape[d] == 0 && d < x.shape.size()) shape[d] = x.shape[d];
    }
  }
  inference.set_output(0, x.type, shape, keeps_first(x.shape, shape) ? x.lod_level : 0);
}

Kernel prepare_reshape(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0), inputs = inputs_of(p),
          sizes = Numbers(p.op, "shape")]() mutable {
    out->resize(x->type(), reshaped(*op, x->shape(), sizes.read(inputs)));
    if (keeps_first(x->shape(), out->shape())) out->offsets = x->offsets;
    copy_values(*x, *out);
  };
}

template <Reshaping kShape>
void infer_reshaping(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const Variable& x = inference.input(0);
  const Shape shape = kShape(inference.op(), x.shape);
  inference.set_output(0, x.type, shape, keeps_first(x.shape, shape) ? x.lod_level : 0);
}

template <Reshaping kShape>
Kernel prepare_reshaping(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0)] {
    out->resize(x->type(), kShape(*op, x->shape()));
    if (keeps_first(x->shape(), out->shape())) out->offsets = x->offsets;
    copy_values(*x, *out);
  };
}

void reshaping_gradient(GradientBuilder& builder) {
  builder.append({.type = "reshape_like",
                  .inputs = {builder.output_gradient(0), builder.op().inputs[0]},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = {}});
}

Kernel prepare_reshape_like(const Preparation& p) {
  return [g = p.input(0), x = p.input(1), dx = p.output(0)] {
    dx->resize(g->type(), x->shape());
    copy_values(*g, *dx);
  };
}

std::vector<std::size_t> permutation(const Operator& op, std::size_t dimensions) {
  const auto perm = attribute<std::vector<std::int64_t>>(op, "perm");
  std::vector<std::size_t> order;
  for (const std::int64_t axis : perm) order.push_back(axis_of(op, axis, dimensions));
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (sorted.size() != dimensions || sorted[d] != d) {
      fail(op, "perm " + to_string(perm) + " does not name each of " + std::to_string(dimensions) +
                   " dimensions once");
    }
  }
  return order;
}

void infer_transpose(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const Variable& x = inference.input(0);
  Shape shape;
  for (const std::size_t d : permutation(inference.op(), x.shape.size())) shape.push_back(x.shape[d]);
  inference.set_output(0, x.type, shape);
}

Kernel prepare_transpose(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0)] {
    const auto order = permutation(*op, x->shape().size());
    const auto from = strides_of(x->shape());
    Shape shape;
    std::vector<std::size_t> strides;
    for (const std::size_t d : order) {
      shape.push_back(x->shape()[d]);
      strides.push_back(from[d]);
    }
    out->resize(x->type(), shape);
    gather_view(*x, 0, shape, strides, *out);
  };
}

void transpose_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  const auto order = permutation(op, attribute<std::vector<std::int64_t>>(op, "perm").size());
  std::vector<std::int64_t> back(order.size());
  for (std::size_t d = 0; d < order.size(); ++d) back[order[d]] = static_cast<std::int64_t>(d);
  builder.append({.type = "transpose",
                  .inputs = {builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = {{"perm", back}}});
}

/// What a slice sees of X.
struct SliceView {
  Shape shape;
  std::vector<std::size_t> strides;
  std::size_t offset = 0;
};

/// The attributes of a slice.
struct Cut {
  explicit Cut(const Operator& op)
      : op(&op),
        axes(attribute<std::vector<std::int64_t>>(op, "axes")),
        steps(attribute(op, "steps", std::vector<std::int64_t>(axes.size(), 1))),
        starts(op, "starts"),
        ends(op, "ends") {
    if (axes.size() != starts.declared().size() || axes.size() != ends.declared().size() ||
        axes.size() != steps.size()) {
      fail(op, "axes, starts and ends differ in length");
    }
    if (std::ranges::find(steps, 0) != steps.end()) fail(op, "a step is 0");
  }

  const Operator* op;
  std::vector<std::int64_t> axes, steps;
  Numbers starts, ends;

  SliceView view(const Shape& x, const std::vector<std::int64_t>& from,
                 const std::vector<std::int64_t>& to) const {
    const bool known = count(x) >= 0;
    SliceView view{x, known ? strides_of(x) : std::vector<std::size_t>(x.size(), 0), 0};
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t d = axis_of(*op, axes[i], x.size());
      if (x[d] < 0) continue;
      const std::int64_t size = x[d], step = std::abs(steps[i]);
      const auto place = [size](std::int64_t at) { return at < 0 ? at + size : at; };
      std::int64_t start = std::clamp<std::int64_t>(place(from[i]), 0, size);
      std::int64_t way = std::clamp<std::int64_t>(place(to[i]), 0, size) - start;
      if (steps[i] < 0) {
        // Down to the place above `end`; as in Paddle, -1 stands for the one before the first.
        start = std::clamp<std::int64_t>(place(from[i]), -1, size - 1);
        way = start - (to[i] == -1 ? -1 : std::clamp<std::int64_t>(place(to[i]), 0, size));
      }
      view.shape[d] = way <= 0 ? 0 : (way - 1) / step + 1;
      view.offset += static_cast<std::size_t>(std::max<std::int64_t>(start, 0)) * view.strides[d];
      // Places are computed without a sign, so that a stride down wraps around.
      view.strides[d] *= static_cast<std::size_t>(steps[i]);
    }
    return view;
  }

  /// What is known while the program is built.
  Shape declared(const Shape& x) const {
    Shape shape = view(x, starts.declared(), ends.declared()).shape;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t d = axis_of(*op, axes[i], x.size());
      if (!starts.known(i) || !ends.known(i)) shape[d] = -1;
    }
    return shape;
  }
};

void infer_slice(Inference& inference) {
  inference.expect_inputs(1, static_cast<std::size_t>(-1));
  inference.expect_outputs(1, 1);
  const Variable& x = inference.input(0);
  inference.set_output(0, x.type, Cut(inference.op()).declared(x.shape));
}

Kernel prepare_slice(const Preparation& p) {
  return [cut = Cut(p.op), x = p.input(0), out = p.output(0), inputs = inputs_of(p)]() mutable {
    const SliceView view = cut.view(x->shape(), cut.starts.read(inputs), cut.ends.read(inputs));
    out->resize(x->type(), view.shape);
    gather_view(*x, view.offset, view.shape, view.strides, *out);
  };
}

/// (X, numbers …, dOut) -> dX
Kernel prepare_slice_gradient(const Preparation& p) {
  return [cut = Cut(p.op), x = p.input(0), g = p.input(p.inputs() - 1), dx = p.output(0),
          inputs = inputs_of(p)]() mutable {
    const SliceView view = cut.view(x->shape(), cut.starts.read(inputs), cut.ends.read(inputs));
    dx->resize(g->type(), x->shape());
    add_to_view(*g, *dx, view.offset, view.shape, view.strides);
  };
}

void slice_gradient(GradientBuilder& builder) {
  std::vector<std::string> inputs = builder.op().inputs;
  inputs.push_back(builder.output_gradient(0));
  builder.append({.type = "slice_grad",
                  .inputs = std::move(inputs),
                  .outputs = {builder.input_gradient(0)},
                  .attributes = builder.op().attributes});
}

}  // namespace

std::span<const OperatorDefinition> layout_operators() {
  static constexpr OperatorDefinition all[] = {
      {"reshape",
       infer_reshape,
       prepare_reshape,
       reshaping_gradient,
       {"(X, numbers ...) -> Out", "the same values in another shape",
        "shape: 0 keeps that dimension, one -1 is computed"}},
      {"flatten",
       infer_reshaping<flattened>,
       prepare_reshaping<flattened>,
       reshaping_gradient,
       {"(X) -> Out", "dimensions made one", "start_axis = 0; stop_axis = -1"}},
      {"squeeze",
       infer_reshaping<squeezed>,
       prepare_reshaping<squeezed>,
       reshaping_gradient,
       {"(X) -> Out", "dimensions of 1 dropped",
        "axes: dropped where 1; none given: all that are 1; picks = false: they are all 1"}},
      {"unsqueeze",
       infer_reshaping<unsqueezed>,
       prepare_reshaping<unsqueezed>,
       reshaping_gradient,
       {"(X) -> Out", "dimensions of 1 added", "axes: their places in the result"}},
      {"reshape_like",
       infer_gradient,
       prepare_reshape_like,
       reshaping_gradient,
       {"(dOut, X) -> dX", "dOut in the shape of X; append_backward adds it"}},
      {"transpose",
       infer_transpose,
       prepare_transpose,
       transpose_gradient,
       {"(X) -> Out", "dimensions in another order", "perm"}},
      {"slice",
       infer_slice,
       prepare_slice,
       slice_gradient,
       {"(X, numbers ...) -> Out", "a range of places along some axes",
        "axes; starts, ends: negative ones count from the end, too large ones are cut; "
        "steps: with negative ones an end of -1 is before the first place"}},
      {"slice_grad", infer_gradient, prepare_slice_gradient, gradient_of_linear},
  };
  return all;
}

}  // namespace fleetrun::engine
