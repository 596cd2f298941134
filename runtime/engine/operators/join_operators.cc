// Operators that put tensors side by side or take them apart. A negative axis counts from the end.

#include <cstring>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/axes.h"
#include "runtime/engine/operators/second_gradients.h"

namespace fleetrun::engine {

namespace {

// ---- concat, stack, split: blocks of bytes between one wide tensor and several narrow ones. ----

struct Part {
  std::byte* at;
  std::size_t bytes;
};

/// Copies `rows` rows of all parts from (to) a tensor whose rows hold them side by side.
template <bool kGather>
void copy_parts(std::byte* whole, const std::vector<Part>& parts, std::size_t rows) {
  std::size_t row_bytes = 0;
  for (const Part& part : parts) row_bytes += part.bytes;
  std::size_t offset = 0;
  for (const Part& part : parts) {
    if (part.at != nullptr) {
      std::byte* wide = whole + offset;
      std::byte* narrow = part.at;
      for (std::size_t r = 0; r < rows; ++r, wide += row_bytes, narrow += part.bytes) {
        std::memcpy(kGather ? wide : narrow, kGather ? narrow : wide, part.bytes);
      }
    }
    offset += part.bytes;
  }
}

void infer_concat(Inference& inference) {
  inference.expect_inputs(1, static_cast<std::size_t>(-1));
  inference.expect_outputs(1, 1);
  const Variable first = inference.input(0);
  const std::size_t axis =
      axis_of(inference.op(), attribute(inference.op(), "axis", std::int64_t{0}), first.shape.size());
  Shape shape = first.shape;
  for (std::size_t i = 1; i < inference.op().inputs.size(); ++i) {
    const Variable& next = inference.input(i);
    if (next.type != first.type) inference.fail("the types of its inputs differ");
    bool same = next.shape.size() == shape.size();
    for (std::size_t d = 0; same && d < shape.size(); ++d) {
      same = d == axis || shape[d] < 0 || next.shape[d] < 0 || shape[d] == next.shape[d];
      if (d != axis && shape[d] < 0) shape[d] = next.shape[d];
    }
    if (!same) inference.fail("its inputs differ outside of axis " + std::to_string(axis));
    shape[axis] = shape[axis] < 0 || next.shape[axis] < 0 ? -1 : shape[axis] + next.shape[axis];
  }
  inference.set_output(0, first.type, shape, axis == 0 ? 0 : first.lod_level);
}

Kernel prepare_concat(const Preparation& p) {
  std::vector<const Tensor*> inputs;
  for (std::size_t i = 0; i < p.inputs(); ++i) inputs.push_back(p.input(i));
  return [op = &p.op, inputs = std::move(inputs), out = p.output(0),
          wanted = attribute(p.op, "axis", std::int64_t{0}), shape = Shape(),
          parts = std::vector<Part>()]() mutable {
    shape = inputs[0]->shape();
    const std::size_t axis = axis_of(*op, wanted, shape.size());
    std::int64_t width = 0;
    parts.clear();
    for (const Tensor* input : inputs) {
      const Shape& next = input->shape();
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (next.size() == shape.size() && (d == axis || next[d] == shape[d])) continue;
        fail(*op, "its inputs are " + to_string(inputs[0]->shape()) + " and " + to_string(next));
      }
      width += next[axis];
      parts.push_back({static_cast<std::byte*>(const_cast<void*>(input->data())),
                       product(next, axis, next.size()) * size_of(input->type())});
    }
    shape[axis] = width;
    out->resize(inputs[0]->type(), shape);
    if (axis > 0) out->offsets = inputs[0]->offsets;
    copy_parts<true>(static_cast<std::byte*>(out->data()), parts, product(shape, 0, axis));
  };
}

/// (dOut, X1, X2, …) -> dX1, dX2, …
Kernel prepare_concat_gradient(const Preparation& p) {
  std::vector<std::pair<const Tensor*, Tensor*>> inputs;
  for (std::size_t i = 1; i < p.inputs(); ++i) inputs.emplace_back(p.input(i), p.output(i - 1));
  return [op = &p.op, g = p.input(0), inputs = std::move(inputs),
          wanted = attribute(p.op, "axis", std::int64_t{0}), parts = std::vector<Part>()]() mutable {
    const std::size_t axis = axis_of(*op, wanted, g->shape().size());
    parts.clear();
    for (const auto& [x, dx] : inputs) {
      if (dx != nullptr) dx->resize(g->type(), x->shape());
      parts.push_back({dx == nullptr ? nullptr : static_cast<std::byte*>(dx->data()),
                       product(x->shape(), axis, x->shape().size()) * size_of(g->type())});
    }
    auto* whole = static_cast<std::byte*>(const_cast<void*>(g->data()));
    copy_parts<false>(whole, parts, product(g->shape(), 0, axis));
  };
}

/// For concat and stack: the gradient of the whole, cut as the inputs are.
void join_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  Operator gradient{.type = op.type + "_grad",
                    .inputs = {builder.output_gradient(0)},
                    .outputs = {},
                    .attributes = op.attributes};
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    gradient.inputs.push_back(op.inputs[i]);
    gradient.outputs.push_back(builder.input_gradient(i));
  }
  builder.append(std::move(gradient));
}

std::size_t stack_axis(const Operator& op, std::size_t dimensions) {
  return axis_of(op, attribute(op, "axis", std::int64_t{0}), dimensions + 1);
}

void infer_stack(Inference& inference) {
  inference.expect_inputs(1, static_cast<std::size_t>(-1));
  inference.expect_outputs(1, 1);
  const Variable first = inference.input(0);
  for (std::size_t i = 1; i < inference.op().inputs.size(); ++i) {
    const Variable& next = inference.input(i);
    if (next.type != first.type || next.shape.size() != first.shape.size())
      inference.fail("its inputs differ");
  }
  Shape shape = first.shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(stack_axis(inference.op(), shape.size())),
               static_cast<std::int64_t>(inference.op().inputs.size()));
  inference.set_output(0, first.type, shape);
}

Kernel prepare_stack(const Preparation& p) {
  std::vector<const Tensor*> inputs;
  for (std::size_t i = 0; i < p.inputs(); ++i) inputs.push_back(p.input(i));
  return [op = &p.op, inputs = std::move(inputs), out = p.output(0), shape = Shape(),
          parts = std::vector<Part>()]() mutable {
    shape = inputs[0]->shape();
    const std::size_t axis = stack_axis(*op, shape.size());
    parts.clear();
    for (const Tensor* input : inputs) {
      if (input->shape() != inputs[0]->shape()) {
        fail(*op, "its inputs are " + to_string(inputs[0]->shape()) + " and " + to_string(input->shape()));
      }
      parts.push_back({static_cast<std::byte*>(const_cast<void*>(input->data())),
                       product(shape, axis, shape.size()) * size_of(input->type())});
    }
    const std::size_t rows = product(shape, 0, axis);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<std::int64_t>(inputs.size()));
    out->resize(inputs[0]->type(), shape);
    copy_parts<true>(static_cast<std::byte*>(out->data()), parts, rows);
  };
}

/// (dOut, X1, X2, …) -> dX1, dX2, …
Kernel prepare_stack_gradient(const Preparation& p) {
  std::vector<std::pair<const Tensor*, Tensor*>> inputs;
  for (std::size_t i = 1; i < p.inputs(); ++i) inputs.emplace_back(p.input(i), p.output(i - 1));
  return [op = &p.op, g = p.input(0), inputs = std::move(inputs), parts = std::vector<Part>()]() mutable {
    const Shape& shape = inputs[0].first->shape();
    const std::size_t axis = stack_axis(*op, shape.size());
    parts.clear();
    for (const auto& [x, dx] : inputs) {
      if (dx != nullptr) dx->resize(g->type(), x->shape());
      parts.push_back({dx == nullptr ? nullptr : static_cast<std::byte*>(dx->data()),
                       product(shape, axis, shape.size()) * size_of(g->type())});
    }
    auto* whole = static_cast<std::byte*>(const_cast<void*>(g->data()));
    copy_parts<false>(whole, parts, product(shape, 0, axis));
  };
}

/// The sizes of a split along an axis of `size`.
std::vector<std::int64_t> sections_of(const Operator& op, std::int64_t size) {
  const auto parts = static_cast<std::int64_t>(op.outputs.size());
  auto sections = attribute(op, "sections", std::vector<std::int64_t>());
  if (sections.empty()) {
    if (size >= 0 && size % parts != 0) {
      fail(op,
           std::to_string(size) + " values cannot be split into " + std::to_string(parts) + " equal parts");
    }
    return std::vector<std::int64_t>(op.outputs.size(), size < 0 ? -1 : size / parts);
  }
  if (sections.size() != op.outputs.size()) {
    fail(op, std::to_string(sections.size()) + " sections for " + std::to_string(parts) + " outputs");
  }
  std::int64_t known = 0, unknown = 0;
  for (const std::int64_t section : sections) (section < 0 ? unknown : known) += section < 0 ? 1 : section;
  if (size >= 0 && (unknown > 1 || known > size || (unknown == 0 && known != size))) {
    fail(op, "sections " + to_string(sections) + " do not add up to " + std::to_string(size));
  }
  for (std::int64_t& section : sections) {
    if (section < 0 && size >= 0) section = size - known;
  }
  return sections;
}

void infer_split(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, static_cast<std::size_t>(-1));
  const Variable x = inference.input(0);
  const std::size_t axis =
      axis_of(inference.op(), attribute(inference.op(), "axis", std::int64_t{0}), x.shape.size());
  const auto sections = sections_of(inference.op(), x.shape[axis]);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    Shape shape = x.shape;
    shape[axis] = sections[i];
    inference.set_output(i, x.type, shape);
  }
}

Kernel prepare_split(const Preparation& p) {
  std::vector<Tensor*> outputs;
  for (std::size_t i = 0; i < p.outputs(); ++i) outputs.push_back(p.output(i));
  return [op = &p.op, x = p.input(0), outputs = std::move(outputs), parts = std::vector<Part>()]() mutable {
    const std::size_t axis = axis_of(*op, attribute(*op, "axis", std::int64_t{0}), x->shape().size());
    const auto sections = sections_of(*op, x->shape()[axis]);
    Shape shape = x->shape();
    parts.clear();
    for (std::size_t i = 0; i < sections.size(); ++i) {
      shape[axis] = sections[i];
      outputs[i]->resize(x->type(), shape);
      parts.push_back({static_cast<std::byte*>(outputs[i]->data()),
                       product(shape, axis, shape.size()) * size_of(x->type())});
    }
    copy_parts<false>(static_cast<std::byte*>(const_cast<void*>(x->data())), parts, product(shape, 0, axis));
  };
}

/// (X, dOut1, dOut2, …) -> dX; a part without a gradient counts as zeros.
Kernel prepare_split_gradient(const Preparation& p) {
  std::vector<const Tensor*> gradients;
  for (std::size_t i = 1; i < p.inputs(); ++i) gradients.push_back(p.input(i));
  return [op = &p.op, x = p.input(0), gradients = std::move(gradients), dx = p.output(0),
          parts = std::vector<Part>()]() mutable {
    Operator forward = *op;
    forward.outputs.resize(gradients.size());
    const std::size_t axis = axis_of(*op, attribute(*op, "axis", std::int64_t{0}), x->shape().size());
    const auto sections = sections_of(forward, x->shape()[axis]);
    dx->resize(x->type(), x->shape());
    if (dx->bytes() > 0) std::memset(dx->data(), 0, dx->bytes());
    parts.clear();
    const std::size_t inner = product(x->shape(), axis + 1, x->shape().size()) * size_of(x->type());
    for (std::size_t i = 0; i < sections.size(); ++i) {
      void* from = gradients[i] == nullptr ? nullptr : const_cast<void*>(gradients[i]->data());
      parts.push_back({static_cast<std::byte*>(from), static_cast<std::size_t>(sections[i]) * inner});
    }
    copy_parts<true>(static_cast<std::byte*>(dx->data()), parts, product(x->shape(), 0, axis));
  };
}

void split_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  Operator gradient{
      .type = "split_grad", .inputs = {op.inputs[0]}, .outputs = {}, .attributes = op.attributes};
  for (std::size_t i = 0; i < op.outputs.size(); ++i) gradient.inputs.push_back(builder.output_gradient(i));
  gradient.outputs = {builder.input_gradient(0)};
  builder.append(std::move(gradient));
}

}  // namespace

std::span<const OperatorDefinition> join_operators() {
  static constexpr OperatorDefinition all[] = {
      {"concat",
       infer_concat,
       prepare_concat,
       join_gradient,
       {"(X1, X2, ...) -> Out", "tensors side by side along an axis", "axis = 0"}},
      {"concat_grad", infer_gradient, prepare_concat_gradient, gradient_of_join},
      {"stack",
       infer_stack,
       prepare_stack,
       join_gradient,
       {"(X1, X2, ...) -> Out", "tensors of one shape along a new dimension", "axis = 0"}},
      {"stack_grad", infer_gradient, prepare_stack_gradient, gradient_of_join},
      {"split",
       infer_split,
       prepare_split,
       split_gradient,
       {"(X) -> Out1, Out2, ...", "a tensor taken apart along an axis",
        "axis = 0; sections: sizes, one may be -1; default: equal parts"}},
      {"split_grad", infer_gradient, prepare_split_gradient, gradient_of_split},
  };
  return all;
}

}  // namespace fleetrun::engine
