// Operators that make one value of many. The result over all axes has none: [], as in Paddle 2.6. Offsets
// stay when the first axis does.

#include <algorithm>
#include <limits>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/axes.h"
#include "runtime/engine/operators/second_gradients.h"
#include "runtime/engine/operators/typed.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

namespace {

enum class Reduction { sum, mean, max, min, prod, all, any };

Reduction reduction_of(const Operator& op) {
  constexpr std::pair<std::string_view, Reduction> kNames[] = {
      {"mean", Reduction::mean}, {"max", Reduction::max}, {"min", Reduction::min},
      {"prod", Reduction::prod}, {"all", Reduction::all}, {"any", Reduction::any}};
  for (const auto& [name, reduction] : kNames) {
    if (op.type.starts_with(name)) return reduction;
  }
  return Reduction::sum;
}

bool is_integer(DataType type) {
  return type == DataType::int64 || type == DataType::int32;
}

std::vector<bool> reduced_axes(const Operator& op, std::size_t dimensions) {
  const auto axes = attribute(op, "axis", std::vector<std::int64_t>());
  std::vector<bool> reduced(dimensions, axes.empty());
  for (const std::int64_t axis : axes) reduced[axis_of(op, axis, dimensions)] = true;
  return reduced;
}

Shape reduced_shape(const Operator& op, const Shape& x, const std::vector<bool>& reduced) {
  const bool keep = attribute(op, "keepdim", false);
  Shape shape;
  for (std::size_t d = 0; d < x.size(); ++d) {
    if (!reduced[d])
      shape.push_back(x[d]);
    else if (keep)
      shape.push_back(1);
  }
  return shape;
}

bool keeps_first(const std::vector<bool>& reduced) {
  return !reduced.empty() && !reduced[0];
}

void infer_reduce(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  const Variable& x = inference.input(0);
  const Reduction kind = reduction_of(inference.op());
  const bool logical = kind == Reduction::all || kind == Reduction::any;
  const bool counts = kind == Reduction::sum && x.type == DataType::boolean;
  if (logical) {
    inference.expect_type(0, DataType::boolean);
  } else if (!counts && x.type != DataType::float64 && (kind == Reduction::mean || !is_integer(x.type))) {
    inference.expect_type(0, DataType::float32);
  }
  const auto reduced = reduced_axes(inference.op(), x.shape.size());
  inference.set_output(0, counts ? DataType::int64 : x.type, reduced_shape(inference.op(), x.shape, reduced),
                       keeps_first(reduced) ? x.lod_level : 0);
}

/// Dimensions of X joined to stretches that are reduced or kept as a whole: [outer…, inner].
struct Walk {
  std::vector<std::pair<std::size_t, bool>> stretches;
  /// Reduced values that make one result.
  std::size_t values = 1;

  void plan(const Shape& x, const std::vector<bool>& reduced) {
    stretches.clear();
    values = 1;
    for (std::size_t d = 0; d < x.size(); ++d) {
      const auto size = static_cast<std::size_t>(x[d]);
      if (reduced[d]) values *= size;
      if (!stretches.empty() && stretches.back().second == reduced[d])
        stretches.back().first *= size;
      else
        stretches.emplace_back(size, reduced[d]);
    }
    if (stretches.empty()) stretches.emplace_back(1, true);
  }

  /// body(first value of X, values, first result, whether the inner stretch is reduced)
  template <class Body>
  void for_each(const Body& body) const {
    std::size_t at = 0;
    visit(0, 0, at, body);
  }

 private:
  template <class Body>
  void visit(std::size_t level, std::size_t result, std::size_t& at, const Body& body) const {
    const auto [size, is_reduced] = stretches[level];
    if (level + 1 == stretches.size()) {
      body(at, size, result * (is_reduced ? 1 : size), is_reduced);
      at += size;
      return;
    }
    for (std::size_t i = 0; i < size; ++i) {
      visit(level + 1, is_reduced ? result : result * size + i, at, body);
    }
  }
};

/// The walk over X and the result's shape, made anew only when X's shape is another.
struct Plan {
  Walk walk = {};
  Shape result = {};
  Shape of = {};
  bool keeps_offsets = false;

  void follow(const Operator& op, const Shape& x) {
    if (!walk.stretches.empty() && of == x) return;
    of = x;
    const auto reduced = reduced_axes(op, x.size());
    walk.plan(x, reduced);
    keeps_offsets = keeps_first(reduced);
    result = reduced_shape(op, x, reduced);
  }
};

template <class T>
void sum_values(const Walk& walk, const T* from, T* to) {
  walk.for_each([&](std::size_t at, std::size_t size, std::size_t result, bool reduced) {
    const T* x = from + at;
    T* out = to + result;
    if constexpr (std::is_same_v<T, float>) {
      vectorized([=]() __attribute__((always_inline)) {
        if (reduced) {
          *out += sum_of(x, size);
        } else {
          for (std::size_t k = 0; k < size; ++k) out[k] += x[k];
        }
      });
    } else {
      for (std::size_t k = 0; k < size; ++k) out[reduced ? 0 : k] += x[k];
    }
  });
}

/// out = combine(out, value) for every value, from `first` on.
template <class From, class T, class Combine>
void fold(const Walk& walk, const Tensor& x, Tensor& out, T first, const Combine& combine) {
  const From* from = x.values<From>().data();
  const auto to = out.values<T>();
  std::fill(to.begin(), to.end(), first);
  walk.for_each([&](std::size_t at, std::size_t size, std::size_t result, bool reduced) {
    for (std::size_t k = 0; k < size; ++k) {
      T& target = to[result + (reduced ? 0 : k)];
      target = combine(target, static_cast<T>(from[at + k]));
    }
  });
}

/// The greater, or the smaller, of two values; NaN when one of them is.
template <bool kGreater, class T>
[[gnu::always_inline]] inline T better(T best, T value) {
  const bool leads = kGreater ? value > best : value < best;
  return (leads | (value != value)) ? value : best;
}

/// Sixteen lanes do not wait for one another.
template <bool kGreater, class T>
[[gnu::always_inline]] inline T best_of(T best, const T* values, std::size_t size) {
  constexpr std::size_t kLanes = 16;
  std::size_t k = 0;
  if (size >= kLanes) {
    T lanes[kLanes];
    std::copy_n(values, kLanes, lanes);
    for (k = kLanes; k + kLanes <= size; k += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) lanes[l] = better<kGreater>(lanes[l], values[k + l]);
    }
    for (const T lane : lanes) best = better<kGreater>(best, lane);
  }
  for (; k < size; ++k) best = better<kGreater>(best, values[k]);
  return best;
}

template <bool kGreater, class T>
void find_best(const Walk& walk, const T* from, std::span<T> to) {
  using Limits = std::numeric_limits<T>;
  const T worst = kGreater ? (Limits::has_infinity ? -Limits::infinity() : Limits::lowest())
                           : (Limits::has_infinity ? Limits::infinity() : Limits::max());
  std::fill(to.begin(), to.end(), worst);
  walk.for_each([&](std::size_t at, std::size_t size, std::size_t result, bool reduced) {
    const T* x = from + at;
    T* out = to.data() + result;
    vectorized([=]() __attribute__((always_inline)) {
      if (reduced) {
        *out = best_of<kGreater>(*out, x, size);
      } else {
        for (std::size_t k = 0; k < size; ++k) out[k] = better<kGreater>(out[k], x[k]);
      }
    });
  });
}

template <class T>
void reduce_numbers(Reduction kind, const Walk& walk, const Tensor& x, Tensor& out) {
  if (kind == Reduction::max) return find_best<true>(walk, x.values<T>().data(), out.values<T>());
  if (kind == Reduction::min) return find_best<false>(walk, x.values<T>().data(), out.values<T>());
  if (kind == Reduction::prod) {
    return fold<T>(walk, x, out, T{1}, [](T a, T b) { return static_cast<T>(a * b); });
  }
  const auto to = out.values<T>();
  std::fill(to.begin(), to.end(), T{});
  sum_values(walk, x.values<T>().data(), to.data());
  if (kind != Reduction::mean) return;
  for (T& value : to) value = static_cast<T>(value / static_cast<T>(walk.values));
}

void reduce_booleans(Reduction kind, const Walk& walk, const Tensor& x, Tensor& out) {
  if (kind == Reduction::sum) {
    return fold<bool>(walk, x, out, std::int64_t{0}, [](std::int64_t a, std::int64_t b) { return a + b; });
  }
  const bool all = kind == Reduction::all;
  fold<bool>(walk, x, out, all, [all](bool a, bool b) { return all ? a && b : a || b; });
}

Kernel prepare_reduce(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0), kind = reduction_of(p.op), plan = Plan()]() mutable {
    plan.follow(*op, x->shape());
    const Walk& walk = plan.walk;
    const bool counts = kind == Reduction::sum && x->type() == DataType::boolean;
    out->resize(counts ? DataType::int64 : x->type(), plan.result);
    if (plan.keeps_offsets) out->offsets = x->offsets;
    if (x->type() == DataType::boolean) return reduce_booleans(kind, walk, *x, *out);
    if (x->type() == DataType::int64) return reduce_numbers<std::int64_t>(kind, walk, *x, *out);
    if (x->type() == DataType::int32) return reduce_numbers<std::int32_t>(kind, walk, *x, *out);
    if (x->type() == DataType::float64) return reduce_numbers<double>(kind, walk, *x, *out);
    reduce_numbers<float>(kind, walk, *x, *out);
  };
}

/// f(place in X, place in Out) for every value of X.
template <class F>
void for_each_value(const Walk& walk, const F& f) {
  walk.for_each([&f](std::size_t at, std::size_t size, std::size_t result, bool reduced) {
    for (std::size_t k = 0; k < size; ++k) f(at + k, result + (reduced ? 0 : k));
  });
}

/// The product of the other values: Out / X, and where X is 0 what the others give.
template <class T>
void differentiate_product(const Walk& walk, std::span<const T> x, std::span<const T> y, std::span<const T> g,
                           std::span<T> dx) {
  std::vector<T> others(y.size(), T{1});
  std::vector<std::size_t> zeros(y.size(), 0);
  for_each_value(walk, [&](std::size_t i, std::size_t r) {
    if (x[i] == T{}) {
      ++zeros[r];
    } else {
      others[r] *= x[i];
    }
  });
  for_each_value(walk, [&](std::size_t i, std::size_t r) {
    const bool is_only_zero = x[i] == T{} && zeros[r] == 1;
    dx[i] = g[r] * (zeros[r] == 0 ? y[r] / x[i] : is_only_zero ? others[r] : T{});
  });
}

/// (X, Out, dOut) -> dX
Kernel prepare_reduce_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), y = p.input(1), g = p.input(2), dx = p.output(0),
          kind = reduction_of(p.op), plan = Plan()]() mutable {
    plan.follow(*op, x->shape());
    const Walk& walk = plan.walk;
    dx->resize(g->type(), x->shape());
    with_gradient_type(g->type(), [&]<class T>(T) {
      const auto value = x->values<T>(), best = y->values<T>(), from = g->values<T>();
      const auto to = dx->values<T>();
      if (kind == Reduction::max || kind == Reduction::min) {
        return for_each_value(walk, [=](std::size_t i, std::size_t r) {
          to[i] = value[i] == best[r] ? from[r] : from[r] * T{};
        });
      }
      if (kind == Reduction::prod) return differentiate_product(walk, value, best, from, to);
      const T factor = kind == Reduction::mean ? T{1} / static_cast<T>(walk.values) : T{1};
      for_each_value(walk, [=](std::size_t i, std::size_t r) { to[i] = from[r] * factor; });
    });
  };
}

void reduce_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append({.type = op.type + "_grad",
                  .inputs = {op.inputs[0], op.outputs[0], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = op.attributes});
}

void infer_add_n(Inference& inference) {
  inference.expect_inputs(1, static_cast<std::size_t>(-1));
  inference.expect_outputs(1, 1);
  const Variable first = inference.input(0);
  const bool is_wide = first.type == DataType::int64 || first.type == DataType::float64;
  if (!is_wide) inference.expect_type(0, DataType::float32);
  Shape shape = first.shape;
  for (std::size_t i = 1; i < inference.op().inputs.size(); ++i) {
    const Variable& next = inference.input(i);
    bool same = next.type == first.type && next.shape.size() == shape.size();
    for (std::size_t d = 0; same && d < shape.size(); ++d) {
      same = shape[d] < 0 || next.shape[d] < 0 || shape[d] == next.shape[d];
      if (shape[d] < 0) shape[d] = next.shape[d];
    }
    if (!same) inference.fail("its inputs differ");
  }
  inference.set_output(0, first.type, shape, first.lod_level);
}

template <class T>
void add_up(const std::vector<const Tensor*>& inputs, Tensor& out) {
  T* to = out.values<T>().data();
  const std::size_t size = out.size();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const T* from = inputs[i]->values<T>().data();
    if (from == to) continue;
    vectorized([=]() __attribute__((always_inline)) {
      if (i == 0) {
        for (std::size_t k = 0; k < size; ++k) to[k] = from[k];
      } else {
        for (std::size_t k = 0; k < size; ++k) to[k] += from[k];
      }
    });
  }
}

Kernel prepare_add_n(const Preparation& p) {
  std::vector<const Tensor*> inputs;
  for (std::size_t i = 0; i < p.inputs(); ++i) inputs.push_back(p.input(i));
  return [op = &p.op, inputs = std::move(inputs), out = p.output(0)] {
    for (const Tensor* input : inputs) {
      if (input->shape() == inputs[0]->shape()) continue;
      fail(*op, "its inputs are " + to_string(inputs[0]->shape()) + " and " + to_string(input->shape()));
    }
    if (inputs[0] != out) {
      out->resize(inputs[0]->type(), inputs[0]->shape());
      out->offsets = inputs[0]->offsets;
    }
    if (out->type() == DataType::int64) return add_up<std::int64_t>(inputs, *out);
    if (out->type() == DataType::float64) return add_up<double>(inputs, *out);
    add_up<float>(inputs, *out);
  };
}

void add_n_gradient(GradientBuilder& builder) {
  for (std::size_t i = 0; i < builder.op().inputs.size(); ++i) {
    if (!builder.wants(i)) continue;
    builder.append({.type = "assign",
                    .inputs = {builder.output_gradient(0)},
                    .outputs = {builder.input_gradient(i)},
                    .attributes = {}});
  }
}

}  // namespace

std::span<const OperatorDefinition> reduce_operators() {
  static constexpr OperatorDefinition all[] = {
      {"mean",
       infer_reduce,
       prepare_reduce,
       reduce_gradient,
       {"(X) -> Out", "mean; also of float64", "axis = [] (all); keepdim = false"}},
      {"mean_grad", infer_gradient, prepare_reduce_gradient, gradient_of_reduction},
      {"sum",
       infer_reduce,
       prepare_reduce,
       reduce_gradient,
       {"(X) -> Out", "sum; also of float64, int64 and int32, and of bool as int64: how many are true",
        "axis = [] (all); keepdim = false"}},
      {"sum_grad", infer_gradient, prepare_reduce_gradient, gradient_of_reduction},
      {"max",
       infer_reduce,
       prepare_reduce,
       reduce_gradient,
       {"(X) -> Out",
        "greatest value, NaN for a NaN; also of float64, int64 and int32; every value that reaches it gets "
        "the gradient",
        "axis = [] (all); keepdim = false"}},
      {"max_grad", infer_gradient, prepare_reduce_gradient, nullptr},
      {"min",
       infer_reduce,
       prepare_reduce,
       reduce_gradient,
       {"(X) -> Out",
        "smallest value, NaN for a NaN; also of float64, int64 and int32; every value that reaches it gets "
        "the gradient",
        "axis = [] (all); keepdim = false"}},
      {"min_grad", infer_gradient, prepare_reduce_gradient, nullptr},
      {"prod",
       infer_reduce,
       prepare_reduce,
       reduce_gradient,
       {"(X) -> Out", "product, also of float64, int64 and int32", "axis = [] (all); keepdim = false"}},
      {"prod_grad", infer_gradient, prepare_reduce_gradient, nullptr},
      {"all",
       infer_reduce,
       prepare_reduce,
       nullptr,
       {"(X bool) -> Out bool", "whether all are true", "axis = [] (all); keepdim = false"}},
      {"any",
       infer_reduce,
       prepare_reduce,
       nullptr,
       {"(X bool) -> Out bool", "whether one is true", "axis = [] (all); keepdim = false"}},
      {"add_n",
       infer_add_n,
       prepare_add_n,
       add_n_gradient,
       {"(X1, X2, ...) -> Out", "sum of tensors of one shape, also of int64 and float64; Out may be X1"}},
  };
  return all;
}

}  // namespace fleetrun::engine
