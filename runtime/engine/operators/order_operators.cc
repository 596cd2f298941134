// Operators that compare the values along an axis, or number them.

#include <algorithm>
#include <numeric>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/choice.h"
#include "runtime/engine/operators/lines.h"
#include "runtime/engine/operators/second_gradients.h"
#include "runtime/engine/operators/strided.h"
#include "runtime/engine/operators/typed.h"

namespace fleetrun::engine {

namespace {

/// All axes as one when the attribute is not there.
Lines lines_of(const Operator& op, const Tensor& x) {
  if (!op.attributes.contains("axis")) return Lines(x.size());
  return Lines(x.shape(), axis_of(op, attribute<std::int64_t>(op, "axis"), x.shape().size()));
}

void expect_ordered(const Inference& inference) {
  if (inference.input(0).type == DataType::boolean) inference.expect_type(0, DataType::float32);
}

template <class Call>
void with_ordered(DataType type, const Call& call) {
  with_type(type, [&]<class T>(T value) {
    if constexpr (!std::is_same_v<T, bool>) call(value);
  });
}

std::size_t sorted_axis(const Operator& op, const Shape& x) {
  return axis_of(op, attribute(op, "axis", std::int64_t{-1}), x.size());
}

/// What becomes of equal values: Paddle's order of all, Paddle's choice of some, or their own order.
enum class Ties { sorted, chosen, kept };

/// How many of a line stay, and which come first.
struct Choice {
  std::int64_t kept;
  bool largest;
  Ties ties;
};

/// `given` is k, null where an attribute says it.
Choice choice_of(const Operator& op, std::int64_t size, const Tensor* given) {
  if (given != nullptr && given->size() != 1) {
    fail(op, "'" + op.inputs[1] + "' is " + to_string(given->shape()) + ", and one integer is needed");
  }
  if (op.type.starts_with("argsort")) return {size, attribute(op, "descending", false), Ties::sorted};
  const auto k = given == nullptr                   ? attribute<std::int64_t>(op, "k")
                 : given->type() == DataType::int32 ? given->values<std::int32_t>()[0]
                                                    : given->values<std::int64_t>()[0];
  if (k < 1 || (size >= 0 && k > size)) {
    fail(op, "k is " + std::to_string(k) + ", and there are " + std::to_string(size) + " values");
  }
  return {k, attribute(op, "largest", true), Ties::chosen};
}

/// Sizes that only a run knows may be 1, as that of the batch.
void expect_one_integer(const Inference& inference, std::size_t index) {
  const Variable& input = inference.input(index);
  if (input.type != DataType::int32) inference.expect_type(index, DataType::int64);
  if (!std::ranges::all_of(input.shape, [](std::int64_t size) { return size == 1 || size == -1; })) {
    inference.fail("'" + input.name + "' is " + to_string(input.shape) + ", and one integer is needed");
  }
}

void infer_sorted(Inference& inference) {
  inference.expect_inputs(1, inference.op().type == "top_k" ? 2 : 1);
  inference.expect_outputs(2, 2);
  expect_ordered(inference);
  const Variable x = inference.input(0);
  Shape shape = x.shape;
  const std::size_t axis = sorted_axis(inference.op(), shape);
  const bool decided_later = inference.op().inputs.size() == 2;
  if (decided_later) expect_one_integer(inference, 1);
  shape[axis] = decided_later ? -1 : choice_of(inference.op(), shape[axis], nullptr).kept;
  inference.set_output(0, x.type, shape);
  inference.set_output(1, DataType::int64, shape);
}

template <class T>
void sort_line(const T* line, std::size_t step, const Choice& choice, std::vector<std::int64_t>& order) {
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto before = [=](std::int64_t a, std::int64_t b) {
    const T x = line[static_cast<std::size_t>(a) * step], y = line[static_cast<std::size_t>(b) * step];
    // NaN counts as the greatest.
    if (is_nan(x) != is_nan(y)) return choice.largest ? is_nan(x) : is_nan(y);
    return choice.largest ? x > y : x < y;
  };
  switch (choice.ties) {
    case Ties::sorted:
      std::sort(order.begin(), order.end(), before);
      break;
    case Ties::chosen:
      choose(choice.kept, order, before);
      break;
    case Ties::kept:
      std::stable_sort(order.begin(), order.end(), before);
      break;
  }
}

Kernel prepare_sorted(const Preparation& p) {
  return [op = &p.op, x = p.input(0), k = p.inputs() > 1 ? p.input(1) : nullptr, out = p.output(0),
          indices = p.output(1), order = std::vector<std::int64_t>()]() mutable {
    const std::size_t axis = sorted_axis(*op, x->shape());
    const Lines lines(x->shape(), axis);
    const Choice choice = choice_of(*op, x->shape()[axis], k);
    Shape shape = x->shape();
    shape[axis] = choice.kept;
    out->resize(x->type(), shape);
    indices->resize(DataType::int64, shape);
    order.resize(lines.size);
    const auto kept = static_cast<std::size_t>(choice.kept);
    with_ordered(x->type(), [&]<class T>(T) {
      const T* from = x->values<T>().data();
      const auto to = out->values<T>();
      const auto places = indices->values<std::int64_t>();
      lines.for_each([&](std::size_t line, std::size_t first) {
        sort_line(from + first, lines.inner, choice, order);
        const std::size_t target = line / lines.inner * kept * lines.inner + line % lines.inner;
        for (std::size_t k = 0; k < kept; ++k) {
          to[target + k * lines.inner] = from[first + static_cast<std::size_t>(order[k]) * lines.inner];
          places[target + k * lines.inner] = order[k];
        }
      });
    });
  };
}

/// (X, Indices, dOut) -> dX
Kernel prepare_sorted_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), indices = p.input(1), g = p.input(2), dx = p.output(0)] {
    dx->resize(g->type(), x->shape());
    const Lines lines(x->shape(), sorted_axis(*op, x->shape()));
    const auto places = indices->values<std::int64_t>();
    const std::size_t kept = g->size() == 0 ? 1 : g->size() / lines.outer / lines.inner;
    with_gradient_type(g->type(), [&]<class T>(T) {
      const auto from = g->values<T>();
      const auto to = dx->values<T>();
      std::fill(to.begin(), to.end(), T{});
      for (std::size_t i = 0; i < from.size(); ++i) {
        const std::size_t outer = i / lines.inner / kept;
        const std::size_t line = outer * lines.size + static_cast<std::size_t>(places[i]);
        to[line * lines.inner + i % lines.inner] += from[i];
      }
    });
  };
}

void sorted_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append({.type = op.type + "_grad",
                  .inputs = {op.inputs[0], op.outputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = op.attributes});
}

Shape without_axis(const Operator& op, const Shape& x) {
  const bool keep = attribute(op, "keepdim", false);
  if (!op.attributes.contains("axis")) return Shape(keep ? x.size() : 0, 1);
  const std::size_t axis = axis_of(op, attribute<std::int64_t>(op, "axis"), x.size());
  Shape shape = x;
  shape[axis] = 1;
  if (!keep) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return shape;
}

void infer_best(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  expect_ordered(inference);
  inference.set_output(0, DataType::int64, without_axis(inference.op(), inference.input(0).shape));
}

Kernel prepare_best(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0), max = p.op.type == "arg_max"] {
    out->resize(DataType::int64, without_axis(*op, x->shape()));
    const Lines lines = lines_of(*op, *x);
    if (lines.size == 0) fail(*op, "there is no value in " + to_string(x->shape()));
    const auto to = out->values<std::int64_t>();
    with_ordered(x->type(), [&]<class T>(T) {
      const T* from = x->values<T>().data();
      lines.for_each([&](std::size_t line, std::size_t first) {
        std::size_t best = 0;
        for (std::size_t k = 1; k < lines.size; ++k) {
          const T value = from[first + k * lines.inner], leader = from[first + best * lines.inner];
          // As in Paddle, NaN is best where there is nothing else.
          if ((max ? value > leader : value < leader) || (is_nan(leader) && !is_nan(value))) best = k;
        }
        to[line] = static_cast<std::int64_t>(best);
      });
    });
  };
}

void infer_cumsum(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  expect_ordered(inference);
  const Variable x = inference.input(0);
  const bool flat = !inference.op().attributes.contains("axis");
  inference.set_output(0, x.type, flat ? Shape{count(x.shape)} : x.shape);
}

template <class T>
void accumulate(const Lines& lines, bool reverse, const T* from, T* to) {
  lines.for_each([=](std::size_t, std::size_t first) {
    T total{};
    for (std::size_t k = 0; k < lines.size; ++k) {
      const std::size_t at = first + (reverse ? lines.size - 1 - k : k) * lines.inner;
      total = static_cast<T>(total + from[at]);
      to[at] = total;
    }
  });
}

Kernel prepare_cumsum(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0), reverse = attribute(p.op, "reverse", false)] {
    const bool flat = !op->attributes.contains("axis");
    out->resize(x->type(), flat ? Shape{static_cast<std::int64_t>(x->size())} : x->shape());
    with_ordered(x->type(), [&]<class T>(T) {
      accumulate(lines_of(*op, *x), reverse, x->values<T>().data(), out->values<T>().data());
    });
  };
}

/// (X, dOut) -> dX: the sum from the other end, in X's shape.
Kernel prepare_cumsum_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), g = p.input(1), dx = p.output(0),
          reverse = attribute(p.op, "reverse", false)] {
    dx->resize(g->type(), x->shape());
    with_gradient_type(g->type(), [&]<class T>(T) {
      accumulate(lines_of(*op, *x), !reverse, g->values<T>().data(), dx->values<T>().data());
    });
  };
}

void cumsum_gradient(GradientBuilder& builder) {
  builder.append({.type = "cumsum_grad",
                  .inputs = {builder.op().inputs[0], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = builder.op().attributes});
}

void infer_unique(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 4);
  expect_ordered(inference);
  const Variable x = inference.input(0);
  const Shape shapes[] = {{-1}, {-1}, {count(x.shape)}, {-1}};
  for (std::size_t i = 0; i < inference.op().outputs.size(); ++i) {
    inference.set_output(i, i == 0 ? x.type : DataType::int64, shapes[i]);
  }
}

Kernel prepare_unique(const Preparation& p) {
  return [x = p.input(0), out = p.output(0), indices = p.output(1), inverse = p.output(2),
          counts = p.output(3), order = std::vector<std::int64_t>(), firsts = std::vector<std::int64_t>(),
          number = std::vector<std::int64_t>(), times = std::vector<std::int64_t>()]() mutable {
    order.resize(x->size());
    number.resize(x->size());
    firsts.clear();
    times.clear();
    const auto write = [](Tensor* target, const std::vector<std::int64_t>& values) {
      if (target == nullptr) return;
      target->resize(DataType::int64, {static_cast<std::int64_t>(values.size())});
      std::copy(values.begin(), values.end(), target->values<std::int64_t>().begin());
    };
    with_ordered(x->type(), [&]<class T>(T) {
      const auto from = x->values<T>();
      sort_line(from.data(), 1, {static_cast<std::int64_t>(from.size()), false, Ties::kept}, order);
      for (const std::int64_t place : order) {
        const T value = from[static_cast<std::size_t>(place)];
        if (firsts.empty() || from[static_cast<std::size_t>(firsts.back())] != value) {
          firsts.push_back(place);
          times.push_back(0);
        }
        ++times.back();
        number[static_cast<std::size_t>(place)] = static_cast<std::int64_t>(firsts.size()) - 1;
      }
      out->resize(x->type(), {static_cast<std::int64_t>(firsts.size())});
      std::transform(firsts.begin(), firsts.end(), out->values<T>().begin(),
                     [from](std::int64_t place) { return from[static_cast<std::size_t>(place)]; });
    });
    write(indices, firsts);
    write(inverse, number);
    write(counts, times);
  };
}

void infer_where_index(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::boolean);
  const auto dimensions = static_cast<std::int64_t>(inference.input(0).shape.size());
  inference.set_output(0, DataType::int64, {-1, dimensions});
}

Kernel prepare_where_index(const Preparation& p) {
  return [condition = p.input(0), out = p.output(0)] {
    const auto found = condition->values<bool>();
    const auto strides = strides_of(condition->shape());
    out->resize(DataType::int64,
                {std::count(found.begin(), found.end(), true), static_cast<std::int64_t>(strides.size())});
    std::int64_t* to = out->values<std::int64_t>().data();
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i]) continue;
      std::size_t rest = i;
      for (const std::size_t stride : strides) {
        *to++ = static_cast<std::int64_t>(rest / stride);
        rest %= stride;
      }
    }
  };
}

}  // namespace

std::span<const OperatorDefinition> order_operators() {
  static constexpr OperatorDefinition all[] = {
      {"top_k",
       infer_sorted,
       prepare_sorted,
       sorted_gradient,
       {"(X, K int32 or int64 [1] optional) -> Out, Indices int64",
        "the k largest values, in order, NaN the largest; among equal ones the first comes first",
        "k: where K is not given; axis = -1; largest = true: false for the smallest"}},
      {"top_k_grad", infer_gradient, prepare_sorted_gradient, nullptr},
      {"argsort",
       infer_sorted,
       prepare_sorted,
       sorted_gradient,
       {"(X) -> Out, Indices int64",
        "all values in order, NaN the largest; equal ones as std::sort leaves them",
        "axis = -1; descending = false"}},
      {"argsort_grad", infer_gradient, prepare_sorted_gradient, nullptr},
      {"arg_max",
       infer_best,
       prepare_best,
       nullptr,
       {"(X) -> Out int64", "place of the greatest value, NaN aside",
        "axis: one, or none for the place in the flattened X; keepdim = false"}},
      {"arg_min",
       infer_best,
       prepare_best,
       nullptr,
       {"(X) -> Out int64", "place of the smallest value, NaN aside",
        "axis: one, or none for the place in the flattened X; keepdim = false"}},
      {"cumsum",
       infer_cumsum,
       prepare_cumsum,
       cumsum_gradient,
       {"(X) -> Out", "running sum", "axis: one, or none for the flattened X; reverse = false"}},
      {"cumsum_grad", infer_gradient, prepare_cumsum_gradient, gradient_of_linear},
      {"unique",
       infer_unique,
       prepare_unique,
       nullptr,
       {"(X) -> Out [n], Indices int64 [n], Inverse int64 [size of X], Counts int64 [n]",
        "different values, sorted; their first places in the flattened X, the place of each value among "
        "them, and their numbers"}},
      {"where_index",
       infer_where_index,
       prepare_where_index,
       nullptr,
       {"(Condition bool) -> Out int64 [number of true, dimensions]", "places where the condition holds"}},
  };
  return all;
}

}  // namespace fleetrun::engine
