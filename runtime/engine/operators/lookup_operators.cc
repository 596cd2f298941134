// Rows by id. Outputs of lookups keep the offsets of their ids.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/second_gradients.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

namespace {

Shape with_width(const Shape& ids, std::int64_t width) {
  Shape shape = ids;
  shape.push_back(width);
  return shape;
}

void resize_rows(Tensor& out, const Tensor& ids, std::size_t width) {
  if (out.shape().size() != ids.shape().size() + 1 || out.size() != ids.size() * width ||
      !std::equal(ids.shape().begin(), ids.shape().end(), out.shape().begin())) {
    out.resize(DataType::float32, with_width(ids.shape(), static_cast<std::int64_t>(width)));
  }
  out.offsets = ids.offsets;
}

void infer_embedding(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  inference.expect_type(1, DataType::int64);
  const Variable& parameter = inference.input(0);
  if (parameter.shape.size() != 2) inference.fail("the parameter must have the shape [rows, width]");
  const Variable& ids = inference.input(1);
  inference.set_output(0, DataType::float32, with_width(ids.shape, parameter.shape[1]), ids.lod_level);
}

Kernel prepare_embedding(const Preparation& p) {
  return [op = &p.op, parameter = p.input(0), ids = p.input(1), out = p.output(0),
          padding = attribute(p.op, "padding_idx", std::int64_t{-1})] {
    const auto rows = static_cast<std::uint64_t>(parameter->shape()[0]);
    const auto width = static_cast<std::size_t>(parameter->shape()[1]);
    resize_rows(*out, *ids, width);
    if (width == 0) return;
    const auto keys = ids->values<std::int64_t>();
    const float* from = parameter->values<float>().data();
    float* to = out->values<float>().data();
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < keys.size(); ++i, to += width) {
      const auto key = static_cast<std::uint64_t>(keys[i]);
      if (i + kAhead < keys.size()) {
        const auto next = static_cast<std::uint64_t>(keys[i + kAhead]);
        if (next < rows) __builtin_prefetch(from + next * width);
      }
      if (keys[i] == padding && padding >= 0) {
        std::fill_n(to, width, 0.0f);
      } else if (key < rows) {
        std::memcpy(to, from + key * width, width * sizeof(float));
      } else {
        fail_on_data(*op,
                     "id " + std::to_string(keys[i]) + " in '" + op->inputs[1] + "' is outside of '" +
                         op->inputs[0] + "', which has " + std::to_string(rows) + " rows",
                     "make the embedding larger, or map ids into [0, " + std::to_string(rows) + ")");
      }
    }
  };
}

/// (Parameter, Ids, dOut) -> dParameter
Kernel prepare_embedding_gradient(const Preparation& p) {
  return [parameter = p.input(0), ids = p.input(1), g = p.input(2), dw = p.output(0),
          padding = attribute(p.op, "padding_idx", std::int64_t{-1})] {
    const auto width = static_cast<std::size_t>(parameter->shape()[1]);
    dw->resize(DataType::float32, parameter->shape());
    float* to = dw->values<float>().data();
    std::fill_n(to, dw->size(), 0.0f);
    const float* from = g->values<float>().data();
    for (const std::int64_t key : ids->values<std::int64_t>()) {
      if (key != padding || padding < 0) {
        float* row = to + static_cast<std::size_t>(key) * width;
        for (std::size_t c = 0; c < width; ++c) row[c] += from[c];
      }
      from += width;
    }
  };
}

void embedding_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  if (!builder.wants(0)) return;
  if (attribute(op, "is_sparse", false) &&
      builder.row_gradient(op.inputs[0], builder.output_gradient(0), op.inputs[1])) {
    return;
  }
  builder.append({.type = "embedding_grad",
                  .inputs = {op.inputs[0], op.inputs[1], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = op.attributes});
}

void infer_sparse_embedding(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::int64);
  const Operator& op = inference.op();
  const auto width = attribute<std::int64_t>(op, "width");
  if (width < 1) inference.fail("the width is " + std::to_string(width), "give it at least 1");
  Variable parameter;
  parameter.name = attribute<std::string>(op, "parameter");
  parameter.shape = {-1, width};
  parameter.persistable = parameter.trainable = true;
  parameter.stop_gradient = false;
  inference.declare(parameter);
  const Variable& declared = inference.program().variable(parameter.name);
  if (declared.shape.empty() || declared.shape.back() != width) {
    inference.fail("the width is " + std::to_string(width) + ", but '" + parameter.name + "' is " +
                   to_string(declared.shape));
  }
  const Variable ids = inference.input(0);
  inference.set_output(0, DataType::float32, with_width(ids.shape, width), ids.lod_level);
}

Kernel prepare_sparse_embedding(const Preparation& p) {
  if (p.rows == nullptr) {
    fail(p.op, "there is no parameter server to look rows up",
         "train through fleet.distributed_optimizer, or use embedding");
  }
  return [rows = p.rows, ids = p.input(0), out = p.output(0),
          parameter = attribute<std::string>(p.op, "parameter"),
          width = static_cast<std::size_t>(attribute<std::int64_t>(p.op, "width")),
          padding = attribute(p.op, "padding_idx", std::int64_t{-1}), kept = std::vector<std::uint64_t>(),
          pulled = std::vector<float>()]() mutable {
    resize_rows(*out, *ids, width);
    const auto keys = ids->values<std::int64_t>();
    const auto to = out->values<float>();
    const std::span all(reinterpret_cast<const std::uint64_t*>(keys.data()), keys.size());
    if (padding < 0 || std::find(keys.begin(), keys.end(), padding) == keys.end()) {
      rows->pull_rows(parameter, all, to);
      return;
    }
    kept.clear();
    std::copy_if(all.begin(), all.end(), std::back_inserter(kept),
                 [padding](std::uint64_t key) { return key != static_cast<std::uint64_t>(padding); });
    pulled.resize(kept.size() * width);
    rows->pull_rows(parameter, kept, pulled);
    const float* from = pulled.data();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == padding) {
        std::fill_n(&to[i * width], width, 0.0f);
      } else {
        std::copy_n(from, width, &to[i * width]);
        from += width;
      }
    }
  };
}

void sparse_embedding_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  if (attribute(op, "is_test", false)) return;
  builder.row_gradient(attribute<std::string>(op, "parameter"), builder.output_gradient(0), op.inputs[0]);
}

std::size_t examples_of(const Tensor& ids) {
  if (!ids.offsets.empty()) return ids.offsets.size() - 1;
  return ids.shape().empty() ? 1 : static_cast<std::size_t>(ids.shape()[0]);
}

/// What the gradient operators of rows are made from, and their one work:
/// rows of one lookup behind those before it.
struct RowGradient {
  struct Lookup {
    const Tensor* gradient;
    const Tensor* ids;
    std::int64_t padding;
  };
  std::vector<Lookup> lookups;
  std::size_t width;
  std::size_t statistics;
  bool times_batch;

  explicit RowGradient(const Preparation& p)
      : width(static_cast<std::size_t>(attribute<std::int64_t>(p.op, "width"))),
        statistics(static_cast<std::size_t>(attribute(p.op, "statistics", std::int64_t{0}))),
        times_batch(attribute(p.op, "times_batch", false)) {
    for (const std::int64_t padding : attribute<std::vector<std::int64_t>>(p.op, "paddings")) {
      const std::size_t first = 2 * lookups.size();
      lookups.push_back({p.input(first), p.input(first + 1), padding});
    }
  }

  std::size_t total() const {
    std::size_t all = 0;
    for (const Lookup& lookup : lookups) all += lookup.ids->size();
    return all;
  }

  /// Returns how many rows it has written.
  std::size_t take(const Lookup& lookup, std::int64_t* key, float* value) const {
    const Tensor& ids = *lookup.ids;
    const std::int64_t padding = lookup.padding;
    const auto from = lookup.gradient->values<float>();
    const auto looked_up = ids.values<std::int64_t>();
    std::size_t kept = looked_up.size();
    if (padding < 0 && statistics == 0) {
      std::copy(looked_up.begin(), looked_up.end(), key);
      std::copy(from.begin(), from.end(), value);
    } else {
      kept = 0;
      for (std::size_t i = 0; i < looked_up.size(); ++i) {
        if (padding >= 0 && looked_up[i] == padding) continue;
        key[kept] = looked_up[i];
        std::copy_n(&from[i * (width + statistics) + statistics], width, value + kept * width);
        ++kept;
      }
    }
    if (times_batch) {
      const auto batch = static_cast<float>(examples_of(ids));
      std::for_each(value, value + kept * width, [batch](float& each) { each *= batch; });
    }
    return kept;
  }
};

Kernel prepare_row_gradient(const Preparation& p) {
  return [rows = RowGradient(p), values = p.output(0), keys = p.output(1)] {
    const std::size_t total = rows.total();
    const auto width = static_cast<std::int64_t>(rows.width);
    keys->resize(DataType::int64, {static_cast<std::int64_t>(total)});
    values->resize(DataType::float32, {static_cast<std::int64_t>(total), width});
    std::int64_t* key = keys->values<std::int64_t>().data();
    float* value = values->values<float>().data();
    std::size_t kept = 0;
    for (const auto& lookup : rows.lookups) kept += rows.take(lookup, key + kept, value + kept * rows.width);
    if (kept == total) return;
    keys->resize(DataType::int64, {static_cast<std::int64_t>(kept)});
    values->resize(DataType::float32, {static_cast<std::int64_t>(kept), width});
  };
}

enum class Pool { sum, average, sqrt, max };

Pool pool_of(const Operator& op) {
  const std::string name = attribute(op, "pool_type", std::string("sum"));
  if (name == "sum") return Pool::sum;
  if (name == "average" || name == "mean") return Pool::average;
  if (name == "sqrt") return Pool::sqrt;
  if (name == "max") return Pool::max;
  fail(op, "pool_type '" + name + "' is not known", "use sum, average, sqrt or max");
}

float pool_factor(Pool pool, std::size_t values) {
  if (pool == Pool::average && values > 0) return 1.0f / static_cast<float>(values);
  if (pool == Pool::sqrt && values > 0) return 1.0f / std::sqrt(static_cast<float>(values));
  return 1.0f;
}

void infer_sequence_pool(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  static_cast<void>(pool_of(inference.op()));
  const Variable& x = inference.input(0);
  if (x.lod_level == 0) {
    inference.fail("the input has no sequences", "declare its data variable with lod_level=1");
  }
  Shape shape = x.shape;
  if (shape.empty()) inference.fail("the input has no dimensions");
  shape[0] = -1;
  inference.set_output(0, DataType::float32, shape);
}

Kernel prepare_sequence_pool(const Preparation& p) {
  return [op = &p.op, x = p.input(0), out = p.output(0), pool = pool_of(p.op), shape = Shape()]() mutable {
    if (x->offsets.empty()) fail(*op, "the input has no offsets");
    if (x->offsets.back() != static_cast<std::size_t>(x->shape().at(0))) {
      fail(*op, "the input is " + to_string(x->shape()) + ", its sequences have " +
                    std::to_string(x->offsets.back()) + " values");
    }
    const std::size_t examples = x->offsets.size() - 1;
    shape = x->shape();
    shape[0] = static_cast<std::int64_t>(examples);
    out->resize(DataType::float32, shape);
    const std::size_t width = x->offsets.back() == 0 ? out->size() / std::max<std::size_t>(examples, 1)
                                                     : x->size() / x->offsets.back();
    const float* from = x->values<float>().data();
    float* to = out->values<float>().data();
    for (std::size_t r = 0; r < examples; ++r, to += width) {
      const std::size_t begin = x->offsets[r], end = x->offsets[r + 1];
      const float factor = pool_factor(pool, end - begin);
      std::fill_n(to, width, 0.0f);
      if (pool == Pool::max && begin < end) std::copy_n(from + begin * width, width, to);
      for (std::size_t i = begin; i < end; ++i) {
        const float* row = from + i * width;
        for (std::size_t c = 0; c < width; ++c) {
          to[c] = pool == Pool::max ? std::max(to[c], row[c]) : to[c] + row[c];
        }
      }
      for (std::size_t c = 0; c < width; ++c) to[c] *= factor;
    }
  };
}

/// (X, Out, dOut) -> dX; of a maximum, the first that reaches it.
Kernel prepare_sequence_pool_gradient(const Preparation& p) {
  return [x = p.input(0), out = p.input(1), g = p.input(2), dx = p.output(0), pool = pool_of(p.op)] {
    dx->resize(DataType::float32, x->shape());
    dx->offsets = x->offsets;
    const std::size_t examples = x->offsets.size() - 1;
    const std::size_t width = examples == 0 ? 0 : g->size() / examples;
    float* to = dx->values<float>().data();
    const float* value = x->values<float>().data();
    for (std::size_t r = 0; r < examples; ++r) {
      const std::size_t begin = x->offsets[r], end = x->offsets[r + 1];
      const float factor = pool_factor(pool, end - begin);
      const float* from = g->values<float>().data() + r * width;
      const float* best = out->values<float>().data() + r * width;
      for (std::size_t c = 0; c < width; ++c) {
        bool given = false;
        for (std::size_t i = begin; i < end; ++i) {
          const bool takes = pool != Pool::max || (!given && value[i * width + c] == best[c]);
          given = given || takes;
          to[i * width + c] = takes ? from[c] * factor : 0.0f;
        }
      }
    }
  };
}

void sequence_pool_gradient(GradientBuilder& builder) {
  const Operator& op = builder.op();
  builder.append({.type = "sequence_pool_grad",
                  .inputs = {op.inputs[0], op.outputs[0], builder.output_gradient(0)},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = op.attributes});
}

void infer_lod_reset(Inference& inference) {
  inference.expect_inputs(2, 2);
  inference.expect_outputs(1, 1);
  inference.expect_type(1, DataType::int64);
  const Variable& x = inference.input(0);
  if (x.shape.empty()) inference.fail("the input has no rows");
  if (inference.input(1).shape.size() != 1) inference.fail("the lengths are not a list of numbers");
  inference.set_output(0, x.type, Shape(x.shape), 1);
}

Kernel prepare_lod_reset(const Preparation& p) {
  return [op = &p.op, x = p.input(0), lengths = p.input(1), out = p.output(0)] {
    const auto rows = x->shape().at(0);
    std::int64_t total = 0;
    out->offsets.assign(1, 0);
    for (const std::int64_t length : lengths->values<std::int64_t>()) {
      if (length < 0) fail(*op, "a sequence of " + std::to_string(length) + " values");
      total += length;
      out->offsets.push_back(static_cast<std::size_t>(total));
    }
    if (total != rows) {
      fail(*op, "the input is " + to_string(x->shape()) + ", its sequences have " + std::to_string(total) +
                    " values");
    }
    out->resize(x->type(), Shape(x->shape()));
    if (x->bytes() > 0) std::memcpy(out->data(), x->data(), x->bytes());
  };
}

void lod_reset_gradient(GradientBuilder& builder) {
  builder.append({.type = "reshape_like",
                  .inputs = {builder.output_gradient(0), builder.op().inputs[0]},
                  .outputs = {builder.input_gradient(0)},
                  .attributes = {}});
}

}  // namespace

std::span<const OperatorDefinition> lookup_operators() {
  static constexpr OperatorDefinition all[] = {
      {"embedding",
       infer_embedding,
       prepare_embedding,
       embedding_gradient,
       {"(Parameter [V, width], Ids int64) -> Out: the ids' shape + [width]",
        "rows of a parameter; an id outside [0, V) is an error naming it",
        "is_sparse = false: the gradient is dense; true: rows; padding_idx = -1 (none): that id gives "
        "zeros, and gets no gradient where that is dense"}},
      {"embedding_grad", infer_gradient, prepare_embedding_gradient, gradient_of_linear},
      {"sparse_embedding",
       infer_sparse_embedding,
       prepare_sparse_embedding,
       sparse_embedding_gradient,
       {"(Ids int64) -> Out: the ids' shape + [width]", "rows of a table, which knows every id",
        "parameter: its name (the variable is made when it is not there); width; padding_idx = -1 (none); "
        "is_test = false: true gives the rows no gradient; statistics = 0: that many first columns are "
        "statistics of the row, without a gradient"},
       true},
      {"row_gradient",
       infer_gradient,
       prepare_row_gradient,
       nullptr,
       {"(dOut1, Ids1, dOut2, Ids2, ...) -> Values [n, width], Keys int64 [n]",
        "all looked-up rows of a parameter in order, duplicates included, those of padding_idx left out; "
        "append_backward adds it",
        "statistics = 0: so many first columns of dOut are left out too; times_batch = false: true "
        "multiplies by the number of examples; paddings: the padding_idx of each lookup"}},
      {"sequence_pool",
       infer_sequence_pool,
       prepare_sequence_pool,
       sequence_pool_gradient,
       {"(X [total, ..] with offsets) -> Out [examples, ..]",
        "the values of an example made one; an example without values gives zeros",
        "pool_type: sum, average (mean), sqrt or max"}},
      {"sequence_pool_grad", infer_gradient, prepare_sequence_pool_gradient, nullptr},
      {"lod_reset",
       infer_lod_reset,
       prepare_lod_reset,
       lod_reset_gradient,
       {"(X [total, ..], Lengths int64 [examples]) -> Out",
        "X, its rows in sequences of these lengths: Out has offsets"}},
  };
  return all;
}

}  // namespace fleetrun::engine
