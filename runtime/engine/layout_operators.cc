// Operators that change a tensor's shape or the order of its values; any type, gradients for float32.
//
//   reshape     (X) -> Out; shape: 0 keeps that dimension, one -1 is computed
//   flatten     (X) -> Out; start_axis = 0, stop_axis = -1
//   squeeze     (X) -> Out; axes: dropped where 1; none given: all that are 1
//   unsqueeze   (X) -> Out; axes: places of new dimensions of 1 in the result
//   transpose   (X) -> Out; perm
//   slice       (X) -> Out; axes, starts, ends: negative ones count from the end, too large ones are cut
//
// A negative axis counts from the end. Offsets stay when the first dimension does. The gradient of the first
// four is `reshape_like`: (dOut, X) -> dX.

#include <algorithm>
#include <cstring>

#include "runtime/engine/axes.h"
#include "runtime/engine/operators.h"

namespace fleetrun::engine {

namespace {

using Reshaping = Shape (*)(const Operator&, const Shape&);

Shape reshaped(const Operator& op, const Shape& x) {
  Shape shape = attribute<std::vector<std::int64_t>>(op, "shape");
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
    else
      known *= shape[d];
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
  if (start > stop) fail(op, "start_axis is behind stop_axis");
  Shape shape(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(start));
  shape.push_back(count(std::span(x).subspan(start, stop - start + 1)));
  shape.insert(shape.end(), x.begin() + static_cast<std::ptrdiff_t>(stop) + 1, x.end());
  return shape;
}

Shape squeezed(const Operator& op, const Shape& x) {
  const auto axes = attribute(op, "axes", std::vector<std::int64_t>());
  std::vector<bool> dropped(x.size(), axes.empty());
  for (const std::int64_t axis : axes) dropped[axis_of(op, axis, x.size())] = true;
  Shape shape;
  for (std::size_t d = 0; d < x.size(); ++d) {
    if (!dropped[d] || x[d] != 1) shape.push_back(x[d]);
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

template <Reshaping kShape>
void infer_reshaping(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const Variable& x = inference.input(0);
  const Shape shape = kShape(inference.op(), x.shape);
  const bool keeps = !shape.empty() && !x.shape.empty() && shape[0] == x.shape[0];
  inference.set_output(0, x.type, shape, keeps ? x.lod_level : 0);
}

template <Reshaping kShape>
Kernel prepare_reshaping(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0)] {
    out->resize(x->type(), kShape(*op, x->shape()));
    const bool keeps = !out->shape().empty() && !x->shape().empty() && out->shape()[0] == x->shape()[0];
    if (keeps) out->offsets = x->offsets;
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

// ---- transpose and slice walk over the input with strides. ----

/// Copies to `out`, in order, the values of a strided view.
template <class T>
void gather(const T* from, T* out, const Shape& shape, const std::vector<std::size_t>& strides) {
  const std::size_t dimensions = shape.size();
  const std::size_t size = product(shape, 0, dimensions);
  if (size == 0) return;
  if (dimensions == 0) {
    *out = *from;
    return;
  }
  const auto run = static_cast<std::size_t>(shape.back());
  const std::size_t step = strides.back();
  std::vector<std::size_t> at(dimensions, 0);
  for (std::size_t done = 0; done < size; done += run, out += run) {
    for (std::size_t k = 0; k < run; ++k) out[k] = from[k * step];
    for (std::size_t d = dimensions - 1; d-- > 0;) {
      from += strides[d];
      if (++at[d] < static_cast<std::size_t>(shape[d])) break;
      from -= strides[d] * static_cast<std::size_t>(shape[d]);
      at[d] = 0;
    }
  }
}

template <class T>
void scatter(const T* from, T* out, const Shape& shape, const std::vector<std::size_t>& strides) {
  const std::size_t dimensions = shape.size();
  const std::size_t size = product(shape, 0, dimensions);
  if (size == 0 || dimensions == 0) return;
  const auto run = static_cast<std::size_t>(shape.back());
  const std::size_t step = strides.back();
  std::vector<std::size_t> at(dimensions, 0);
  for (std::size_t done = 0; done < size; done += run, from += run) {
    for (std::size_t k = 0; k < run; ++k) out[k * step] = from[k];
    for (std::size_t d = dimensions - 1; d-- > 0;) {
      out += strides[d];
      if (++at[d] < static_cast<std::size_t>(shape[d])) break;
      out -= strides[d] * static_cast<std::size_t>(shape[d]);
      at[d] = 0;
    }
  }
}

void gather_any(const Tensor& x, std::size_t offset, Tensor& out, const std::vector<std::size_t>& strides) {
  switch (size_of(x.type())) {
    case 1:
      return gather(static_cast<const std::uint8_t*>(x.data()) + offset,
                    static_cast<std::uint8_t*>(out.data()), out.shape(), strides);
    case 4:
      return gather(static_cast<const std::uint32_t*>(x.data()) + offset,
                    static_cast<std::uint32_t*>(out.data()), out.shape(), strides);
    default:
      return gather(static_cast<const std::uint64_t*>(x.data()) + offset,
                    static_cast<std::uint64_t*>(out.data()), out.shape(), strides);
  }
}

std::vector<std::size_t> strides_of(const Shape& shape) {
  std::vector<std::size_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * static_cast<std::size_t>(shape[d]);
  return strides;
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
    gather_any(*x, 0, *out, strides);
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

struct SliceView {
  Shape shape;
  std::size_t offset = 0;
};

SliceView slice_view(const Operator& op, const Shape& x) {
  const auto axes = attribute<std::vector<std::int64_t>>(op, "axes");
  const auto starts = attribute<std::vector<std::int64_t>>(op, "starts");
  const auto ends = attribute<std::vector<std::int64_t>>(op, "ends");
  if (axes.size() != starts.size() || axes.size() != ends.size()) {
    fail(op, "axes, starts and ends differ in length");
  }
  SliceView view{x, 0};
  const bool known = count(x) >= 0;
  const auto strides = known ? strides_of(x) : std::vector<std::size_t>(x.size(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t d = axis_of(op, axes[i], x.size());
    if (x[d] < 0) continue;
    const auto bounded = [size = x[d]](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
    };
    const std::int64_t start = bounded(starts[i]), end = std::max(bounded(ends[i]), start);
    view.shape[d] = end - start;
    view.offset += static_cast<std::size_t>(start) * strides[d];
  }
  return view;
}

void infer_slice(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const Variable& x = inference.input(0);
  inference.set_output(0, x.type, slice_view(inference.op(), x.shape).shape);
}

Kernel prepare_slice(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0)] {
    const SliceView view = slice_view(*op, x->shape());
    out->resize(x->type(), view.shape);
    gather_any(*x, view.offset, *out, strides_of(x->shape()));
  };
}

/// (X, dOut) -> dX
Kernel prepare_slice_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), g = p.input(1), dx = p.output(0)] {
    const SliceView view = slice_view(*op, x->shape());
    dx->resize(DataType::float32, x->shape());
    const auto to = dx->values<float>();
    std::fill(to.begin(), to.end(), 0.0f);
    scatter(g->values<float>().data(), to.data() + view.offset, view.shape, strides_of(x->shape()));
  };
}

void slice_gradient(GradientBuilder& builder) {
  builder.append({.type = "slice_grad",
                  .inputs = {builder.op().inputs[0], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = builder.op().attributes});
}

}  // namespace

std::span<const OperatorDefinition> layout_operators() {
  static constexpr OperatorDefinition all[] = {
      {"reshape", infer_reshaping<reshaped>, prepare_reshaping<reshaped>, reshaping_gradient},
      {"flatten", infer_reshaping<flattened>, prepare_reshaping<flattened>, reshaping_gradient},
      {"squeeze", infer_reshaping<squeezed>, prepare_reshaping<squeezed>, reshaping_gradient},
      {"unsqueeze", infer_reshaping<unsqueezed>, prepare_reshaping<unsqueezed>, reshaping_gradient},
      {"reshape_like", infer_gradient, prepare_reshape_like, nullptr},
      {"transpose", infer_transpose, prepare_transpose, transpose_gradient},
      {"slice", infer_slice, prepare_slice, slice_gradient},
      {"slice_grad", infer_gradient, prepare_slice_gradient, nullptr},
  };
  return all;
}

}  // namespace fleetrun::engine
