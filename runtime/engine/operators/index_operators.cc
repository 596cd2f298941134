// Rows and values by index.

#include <algorithm>
#include <cstring>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/axes.h"
#include "runtime/engine/operators/second_gradients.h"
#include "runtime/engine/operators/typed.h"

namespace fleetrun::engine {

namespace {

bool is_index(DataType type) {
  return type == DataType::int64 || type == DataType::int32;
}

void expect_index(const Inference& inference, std::size_t input) {
  if (!is_index(inference.input(input).type)) inference.expect_type(input, DataType::int64);
}

/// Index values as places in [0, size); a negative one counts from the end.
class Places {
 public:
  const std::vector<std::size_t>& read(const Operator& op, const Tensor& index, std::size_t size) {
    places_.clear();
    const auto take = [&](auto values) {
      for (const std::int64_t value : values) {
        const std::int64_t place = value < 0 ? value + static_cast<std::int64_t>(size) : value;
        if (place < 0 || static_cast<std::size_t>(place) >= size) {
          fail_on_data(op,
                       op.type + ": index " + std::to_string(value) + " in '" + op.inputs[1] +
                           "' is outside of '" + op.inputs[0] + "', which has " + std::to_string(size) +
                           " there",
                       "use indices in [0, " + std::to_string(size) + ")");
        }
        places_.push_back(static_cast<std::size_t>(place));
      }
    };
    if (index.type() == DataType::int32) {
      take(index.values<std::int32_t>());
    } else {
      take(index.values<std::int64_t>());
    }
    return places_;
  }

 private:
  std::vector<std::size_t> places_;
};

std::size_t gather_axis(const Operator& op, const Shape& x) {
  return axis_of(op, attribute(op, "axis", std::int64_t{0}), x.size());
}

std::vector<std::string> inputs_and_gradient(const GradientBuilder& builder) {
  std::vector<std::string> inputs = builder.op().inputs;
  inputs.push_back(builder.output_gradient(0));
  return inputs;
}

/// (inputs …, dOut) -> dX
void first_input_gradient(GradientBuilder& builder) {
  builder.append({.type = builder.op().type + "_grad",
                  .inputs = inputs_and_gradient(builder),
                  .outputs = {builder.input_gradient(0)},
                  .attributes = builder.op().attributes});
}

void infer_gather(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  expect_index(inference, 1);
  const Variable& x = inference.input(0);
  Shape shape = x.shape;
  shape[gather_axis(inference.op(), x.shape)] = count(inference.input(1).shape);
  inference.set_output(0, x.type, shape);
}

Kernel prepare_gather(const Preparation& p) {
  return [op = &p.op, x = p.input(0), index = p.input(1), out = p.output(0), places = Places()]() mutable {
    const Shape& from = x->shape();
    const std::size_t axis = gather_axis(*op, from), size = static_cast<std::size_t>(from[axis]);
    const auto& rows = places.read(*op, *index, size);
    Shape shape = from;
    shape[axis] = static_cast<std::int64_t>(rows.size());
    out->resize(x->type(), shape);
    const std::size_t inner = product(from, axis + 1, from.size()) * size_of(x->type());
    const auto* source = static_cast<const std::byte*>(x->data());
    auto* target = static_cast<std::byte*>(out->data());
    for (std::size_t o = product(from, 0, axis); o-- > 0; source += size * inner) {
      for (const std::size_t row : rows) {
        std::memcpy(target, source + row * inner, inner);
        target += inner;
      }
    }
  };
}

/// (X, Index, dOut) -> dX
Kernel prepare_gather_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), index = p.input(1), g = p.input(2), dx = p.output(0),
          places = Places()]() mutable {
    const Shape& to = x->shape();
    const std::size_t axis = gather_axis(*op, to), size = static_cast<std::size_t>(to[axis]);
    const auto& rows = places.read(*op, *index, size);
    dx->resize(g->type(), to);
    const std::size_t inner = product(to, axis + 1, to.size());
    with_gradient_type(g->type(), [&]<class T>(T) {
      T* target = dx->values<T>().data();
      std::fill_n(target, dx->size(), T{});
      const T* source = g->values<T>().data();
      for (std::size_t o = product(to, 0, axis); o-- > 0; target += size * inner) {
        for (const std::size_t row : rows) {
          T* sum = target + row * inner;
          for (std::size_t k = 0; k < inner; ++k) sum[k] += source[k];
          source += inner;
        }
      }
    });
  };
}

Shape picked_shape(const Operator& op, const Shape& x, const Shape& index) {
  if (index.empty() || index.back() < 0 || static_cast<std::size_t>(index.back()) > x.size()) {
    fail(op, "an index of shape " + to_string(index) + " does not point into " + to_string(x));
  }
  Shape shape(index.begin(), index.end() - 1);
  shape.insert(shape.end(), x.begin() + static_cast<std::ptrdiff_t>(index.back()), x.end());
  return shape;
}

void infer_gather_nd(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  expect_index(inference, 1);
  const Variable& x = inference.input(0);
  inference.set_output(0, x.type, picked_shape(inference.op(), x.shape, inference.input(1).shape));
}

/// The first value of each picked part of X, in parts: one for each row of Index.
class Picks {
 public:
  const std::vector<std::size_t>& read(const Operator& op, const Tensor& x, const Tensor& index) {
    const auto deep = static_cast<std::size_t>(index.shape().back());
    const std::size_t rows = product(index.shape(), 0, index.shape().size() - 1);
    starts_.assign(rows, 0);
    for (std::size_t k = 0; k < deep; ++k) {
      const auto size = static_cast<std::size_t>(x.shape()[k]);
      for (std::size_t r = 0; r < rows; ++r) {
        const std::int64_t value = index.type() == DataType::int32
                                       ? index.values<std::int32_t>()[r * deep + k]
                                       : index.values<std::int64_t>()[r * deep + k];
        const std::int64_t place = value < 0 ? value + static_cast<std::int64_t>(size) : value;
        if (place < 0 || static_cast<std::size_t>(place) >= size) {
          fail_on_data(op,
                       op.type + ": index " + std::to_string(value) + " in '" + op.inputs[1] +
                           "' is outside of '" + op.inputs[0] + "', which is " + to_string(x.shape()),
                       "use indices inside of it");
        }
        starts_[r] = starts_[r] * size + static_cast<std::size_t>(place);
      }
    }
    return starts_;
  }

 private:
  std::vector<std::size_t> starts_;
};

Kernel prepare_gather_nd(const Preparation& p) {
  return [op = &p.op, x = p.input(0), index = p.input(1), out = p.output(0), picks = Picks()]() mutable {
    out->resize(x->type(), picked_shape(*op, x->shape(), index->shape()));
    const auto deep = static_cast<std::size_t>(index->shape().back());
    const std::size_t inner = product(x->shape(), deep, x->shape().size()) * size_of(x->type());
    auto* target = static_cast<std::byte*>(out->data());
    for (const std::size_t start : picks.read(*op, *x, *index)) {
      std::memcpy(target, static_cast<const std::byte*>(x->data()) + start * inner, inner);
      target += inner;
    }
  };
}

/// (X, Index, dOut) -> dX
Kernel prepare_gather_nd_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), index = p.input(1), g = p.input(2), dx = p.output(0),
          picks = Picks()]() mutable {
    dx->resize(g->type(), x->shape());
    const auto deep = static_cast<std::size_t>(index->shape().back());
    const std::size_t inner = product(x->shape(), deep, x->shape().size());
    const auto& starts = picks.read(*op, *x, *index);
    with_gradient_type(g->type(), [&]<class T>(T) {
      T* to = dx->values<T>().data();
      std::fill_n(to, dx->size(), T{});
      const T* from = g->values<T>().data();
      for (const std::size_t start : starts) {
        for (std::size_t k = 0; k < inner; ++k) to[start * inner + k] += *from++;
      }
    });
  };
}

void infer_take_along_axis(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  expect_index(inference, 1);
  const Variable& x = inference.input(0);
  const Shape index = inference.input(1).shape;
  const std::size_t axis = gather_axis(inference.op(), x.shape);
  bool same = index.size() == x.shape.size();
  for (std::size_t d = 0; same && d < index.size(); ++d) {
    same = d == axis || index[d] < 0 || x.shape[d] < 0 || index[d] == x.shape[d];
  }
  if (!same) inference.fail("the index differs outside of axis " + std::to_string(axis));
  inference.set_output(0, x.type, index);
}

/// body(value of Index, its place in X) for every value of Index.
template <class Body>
void along_axis(const Operator& op, const Tensor& x, const Tensor& index, Places& places, const Body& body) {
  const std::size_t axis = gather_axis(op, x.shape());
  const auto size = static_cast<std::size_t>(x.shape()[axis]);
  const auto picked = static_cast<std::size_t>(index.shape()[axis]);
  const std::size_t inner = product(x.shape(), axis + 1, x.shape().size());
  for (std::size_t d = 0; d < x.shape().size(); ++d) {
    if (d == axis || index.shape()[d] == x.shape()[d]) continue;
    fail(op, "the input is " + to_string(x.shape()) + ", the index " + to_string(index.shape()));
  }
  const auto& at = places.read(op, index, size);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::size_t outer = i / inner / picked;
    body(i, (outer * size + at[i]) * inner + i % inner);
  }
}

Kernel prepare_take_along_axis(const Preparation& p) {
  return [op = &p.op, x = p.input(0), index = p.input(1), out = p.output(0), places = Places()]() mutable {
    out->resize(x->type(), index->shape());
    const std::size_t width = size_of(x->type());
    const auto* from = static_cast<const std::byte*>(x->data());
    auto* to = static_cast<std::byte*>(out->data());
    along_axis(*op, *x, *index, places, [=](std::size_t i, std::size_t place) {
      std::memcpy(to + i * width, from + place * width, width);
    });
  };
}

/// (X, Index, dOut) -> dX
Kernel prepare_take_along_axis_gradient(const Preparation& p) {
  return [op = &p.op, x = p.input(0), index = p.input(1), g = p.input(2), dx = p.output(0),
          places = Places()]() mutable {
    dx->resize(g->type(), x->shape());
    with_gradient_type(g->type(), [&]<class T>(T) {
      const auto to = dx->values<T>();
      std::fill(to.begin(), to.end(), T{});
      const auto from = g->values<T>();
      along_axis(*op, *x, *index, places, [=](std::size_t i, std::size_t place) { to[place] += from[i]; });
    });
  };
}

void infer_scatter(Inference& inference) {
  inference.expect_inputs(3, 3);
  inference.expect_outputs(1, 1);
  expect_index(inference, 1);
  const Variable x = inference.input(0);
  const Variable& updates = inference.input(2);
  if (updates.type != x.type) inference.fail("the updates have another type");
  if (x.shape.empty()) inference.fail("the input has no rows");
  const std::int64_t rows = count(inference.input(1).shape);
  const std::int64_t inner = count(std::span(x.shape).subspan(1)), given = count(updates.shape);
  if (rows >= 0 && inner >= 0 && given >= 0 && given != rows * inner) {
    inference.fail("the updates are not as many rows as the index names");
  }
  inference.set_output(0, x.type, x.shape);
}

template <class T>
void scatter_rows(const std::vector<std::size_t>& rows, const T* updates, T* out, std::size_t inner,
                  bool overwrite) {
  if (!overwrite) {
    for (const std::size_t row : rows) std::fill_n(out + row * inner, inner, T{});
  }
  for (const std::size_t row : rows) {
    T* target = out + row * inner;
    for (std::size_t k = 0; k < inner; ++k)
      target[k] = overwrite ? updates[k] : static_cast<T>(target[k] + updates[k]);
    updates += inner;
  }
}

Kernel prepare_scatter(const Preparation& p) {
  return [op = &p.op, x = p.input(0), index = p.input(1), updates = p.input(2), out = p.output(0),
          overwrite = attribute(p.op, "overwrite", true), places = Places()]() mutable {
    const auto& rows = places.read(*op, *index, static_cast<std::size_t>(x->shape()[0]));
    const std::size_t inner = product(x->shape(), 1, x->shape().size());
    if (updates->size() != rows.size() * inner) {
      fail(*op, "the updates are " + to_string(updates->shape()) + " for " + std::to_string(rows.size()) +
                    " rows of " + to_string(x->shape()));
    }
    out->resize(x->type(), x->shape());
    if (x->bytes() > 0) std::memcpy(out->data(), x->data(), x->bytes());
    const auto run = [&]<class T>(T) {
      scatter_rows(rows, updates->values<T>().data(), out->values<T>().data(), inner, overwrite);
    };
    if (x->type() == DataType::float32) return run(float{});
    if (x->type() == DataType::float64) return run(double{});
    if (x->type() == DataType::int64) return run(std::int64_t{});
    if (x->type() == DataType::int32) return run(std::int32_t{});
    fail(*op, "rows of " + std::string(to_string(x->type())) + " cannot be scattered");
  };
}

/// (X, Index, Updates, dOut) -> dX, dUpdates
Kernel prepare_scatter_gradient(const Preparation& p) {
  return [op = &p.op, index = p.input(1), updates = p.input(2), g = p.input(3), dx = p.output(0),
          du = p.output(1), places = Places()]() mutable {
    const auto& rows = places.read(*op, *index, static_cast<std::size_t>(g->shape()[0]));
    const std::size_t inner = product(g->shape(), 1, g->shape().size());
    with_gradient_type(g->type(), [&]<class T>(T) {
      const T* from = g->values<T>().data();
      if (dx != nullptr) {
        dx->resize(g->type(), g->shape());
        T* to = dx->values<T>().data();
        std::copy_n(from, g->size(), to);
        for (const std::size_t row : rows) std::fill_n(to + row * inner, inner, T{});
      }
      if (du != nullptr) {
        du->resize(g->type(), updates->shape());
        T* to = du->values<T>().data();
        for (const std::size_t row : rows) to = std::copy_n(from + row * inner, inner, to);
      }
    });
  };
}

void scatter_gradient(GradientBuilder& builder) {
  builder.append({.type = "scatter_grad",
                  .inputs = inputs_and_gradient(builder),
                  .outputs = {builder.input_gradient(0), builder.input_gradient(2)},
                  .attributes = builder.op().attributes});
}

void infer_one_hot(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  expect_index(inference, 0);
  const auto depth = attribute<std::int64_t>(inference.op(), "depth");
  if (depth < 1) inference.fail("the depth is " + std::to_string(depth), "give it at least 1");
  Shape shape = inference.input(0).shape;
  shape.push_back(depth);
  inference.set_output(0, DataType::float32, shape);
}

Kernel prepare_one_hot(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0), depth = attribute<std::int64_t>(p.op, "depth")] {
    Shape shape = x->shape();
    shape.push_back(depth);
    out->resize(DataType::float32, shape);
    const auto to = out->values<float>();
    std::fill(to.begin(), to.end(), 0.0f);
    const auto mark = [&](auto values) {
      float* row = to.data();
      for (const std::int64_t value : values) {
        if (value < 0 || value >= depth) {
          fail_on_data(*op,
                       "one_hot: " + std::to_string(value) + " in '" + op->inputs[0] + "' is not below " +
                           std::to_string(depth),
                       "make num_classes larger, or map values into it");
        }
        row[value] = 1.0f;
        row += depth;
      }
    };
    if (x->type() == DataType::int32) return mark(x->values<std::int32_t>());
    mark(x->values<std::int64_t>());
  };
}

void infer_masked_select(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  inference.expect_type(1, DataType::boolean);
  inference.set_output(0, inference.input(0).type, {-1});
}

Kernel prepare_masked_select(const Preparation& p) {
  return [op = &p.op, x = p.input(0), mask = p.input(1), out = p.output(0)] {
    if (x->shape() != mask->shape()) {
      fail(*op, "the input is " + to_string(x->shape()) + ", the mask " + to_string(mask->shape()));
    }
    const auto take = mask->values<bool>();
    out->resize(x->type(), {std::count(take.begin(), take.end(), true)});
    const std::size_t width = size_of(x->type());
    const auto* from = static_cast<const std::byte*>(x->data());
    auto* to = static_cast<std::byte*>(out->data());
    for (std::size_t i = 0; i < take.size(); ++i) {
      if (take[i]) to = std::copy_n(from + i * width, width, to);
    }
  };
}

/// (X, Mask, dOut) -> dX
Kernel prepare_masked_select_gradient(const Preparation& p) {
  return [mask = p.input(1), g = p.input(2), dx = p.output(0)] {
    dx->resize(g->type(), mask->shape());
    const auto take = mask->values<bool>();
    with_gradient_type(g->type(), [&]<class T>(T) {
      const auto to = dx->values<T>();
      const T* from = g->values<T>().data();
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = take[i] ? *from++ : T{};
    });
  };
}

}  // namespace

std::span<const OperatorDefinition> index_operators() {
  static constexpr OperatorDefinition all[] = {
      {"gather",
       infer_gather,
       prepare_gather,
       first_input_gradient,
       {"(X, Index [n]) -> Out", "X with one dimension replaced by n picked places of it", "axis = 0"}},
      {"gather_grad", infer_gradient, prepare_gather_gradient, gradient_of_linear},
      {"gather_nd",
       infer_gather_nd,
       prepare_gather_nd,
       first_input_gradient,
       {"(X, Index [.., k]) -> Out [.., X's dimensions after the k-th]",
        "parts of X by their first k indices"}},
      {"gather_nd_grad", infer_gradient, prepare_gather_nd_gradient, gradient_of_linear},
      {"take_along_axis",
       infer_take_along_axis,
       prepare_take_along_axis,
       first_input_gradient,
       {"(X, Index of as many dimensions) -> Out of Index's shape", "values along an axis", "axis"}},
      {"take_along_axis_grad", infer_gradient, prepare_take_along_axis_gradient, gradient_of_linear},
      {"scatter",
       infer_scatter,
       prepare_scatter,
       scatter_gradient,
       {"(X, Index [n], Updates [n, ..]) -> Out",
        "X with rows replaced or added to; the gradient is 0 for X's rows of Index, and that of those rows "
        "for Updates",
        "overwrite = true: rows are replaced; false: zeroed, then added to"}},
      {"scatter_grad", infer_gradient, prepare_scatter_gradient, nullptr},
      {"one_hot",
       infer_one_hot,
       prepare_one_hot,
       nullptr,
       {"(X [..]) -> Out float32 [.., depth]", "1 at the place of the index, 0 elsewhere", "depth"}},
      {"masked_select",
       infer_masked_select,
       prepare_masked_select,
       first_input_gradient,
       {"(X, Mask bool of its shape) -> Out [number of true]", "the values where the mask is true"}},
      {"masked_select_grad", infer_gradient, prepare_masked_select_gradient, gradient_of_linear},
  };
  return all;
}

}  // namespace fleetrun::engine
