// Operators that only passes make; see passes.h for what they stand for.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/operators/activation_formula.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/linear.h"
#include "runtime/engine/operators/matrix_product.h"
#include "runtime/engine/operators/vector_math.h"

namespace fleetrun::engine {

namespace {

using fused::Relu;
using fused::Sigmoid;
using fused::Tanh;

void infer_fused(Inference& inference) {
  inference.fail("is made by passes only");
}

std::size_t last(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.shape().back());
}

template <class F>
void activate(float* out, const float* bias, std::size_t rows, std::size_t columns) {
  vectorized([=]() __attribute__((always_inline)) {
    for (std::size_t r = 0; r < rows; ++r) {
      float* row = out + r * columns;
      if (bias != nullptr) {
        for (std::size_t c = 0; c < columns; ++c) row[c] = F::value(row[c] + bias[c]);
      } else {
        for (std::size_t c = 0; c < columns; ++c) row[c] = F::value(row[c]);
      }
    }
  });
}

template <class F>
Kernel linear_act(const Preparation& p) {
  return [op = &p.op, x = p.input(0), weight = p.input(1), bias = p.input(2), out = p.output(0),
          shape = Shape()]() mutable {
    const LinearSize size = multiply_linear(*op, *x, *weight, *out, shape);
    activate<F>(out->values<float>().data(), bias != nullptr ? bias->values<float>().data() : nullptr,
                size.rows, size.columns);
  };
}

/// to = g · f'(y), and sums = the column sums of `to`, four rows at a time, as linear_grad adds them: from
/// memory, because a product that goes straight into a sum is rounded once only.
template <class F>
void differentiate(const float* y, const float* g, float* to, float* sums, std::size_t rows,
                   std::size_t columns) {
  vectorized([=]() __attribute__((always_inline)) {
    for (std::size_t c = 0; c < columns; ++c) sums[c] = 0.0f;
    std::size_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      float* d = to + r * columns;
      const std::size_t end = (r + 4) * columns;
      for (std::size_t i = r * columns; i < end; ++i) to[i] = g[i] * F::slope(y[i]);
      for (std::size_t c = 0; c < columns; ++c) {
        sums[c] += (d[c] + d[columns + c]) + (d[2 * columns + c] + d[3 * columns + c]);
      }
    }
    for (; r < rows; ++r) {
      const std::size_t begin = r * columns;
      for (std::size_t i = begin; i < begin + columns; ++i) to[i] = g[i] * F::slope(y[i]);
      for (std::size_t c = 0; c < columns; ++c) sums[c] += to[begin + c];
    }
  });
}

template <class F>
Kernel linear_act_gradient(const Preparation& p) {
  return [y = p.input(2), g = p.input(3), weight = p.input(1), dz = std::vector<float>(),
          gradient = LinearGradient(p, 4)]() mutable {
    const std::size_t columns = last(*weight), rows = columns == 0 ? 0 : y->size() / columns;
    dz.resize(rows * columns);
    differentiate<F>(y->values<float>().data(), g->values<float>().data(), dz.data(), gradient.begin(columns),
                     rows, columns);
    gradient.finish(dz.data());
  };
}

template <template <class> class Make>
Kernel by_activation(const Preparation& p) {
  const auto activation = attribute<std::string>(p.op, "activation");
  if (activation == "relu") return Make<Relu>::kernel(p);
  if (activation == "sigmoid") return Make<Sigmoid>::kernel(p);
  if (activation == "tanh") return Make<Tanh>::kernel(p);
  fail(p.op, "activation '" + activation + "' is not known");
}
template <class F>
struct Forward {
  static Kernel kernel(const Preparation& p) { return linear_act<F>(p); }
};
template <class F>
struct Gradient {
  static Kernel kernel(const Preparation& p) { return linear_act_gradient<F>(p); }
};

std::size_t examples_of(const Tensor& ids) {
  if (!ids.offsets.empty()) return ids.offsets.size() - 1;
  return ids.shape().empty() ? 1 : static_cast<std::size_t>(ids.shape()[0]);
}

float pool_factor(const std::string& pool, std::size_t values) {
  if (pool == "average" && values > 0) return 1.0f / static_cast<float>(values);
  if (pool == "sqrt" && values > 0) return 1.0f / std::sqrt(static_cast<float>(values));
  return 1.0f;
}

/// One input of a lookup_concat.
struct Part {
  const Tensor* table;
  const Tensor* source;
  std::string pool;
  std::string parameter;
  std::string ids_name;
  std::string table_name;
  std::size_t width;
  std::size_t begin;
  std::int64_t padding;
};

std::size_t part_examples(const Part& part) {
  const bool pooled = part.pool != "copy" && part.pool != "none";
  return pooled ? examples_of(*part.source) : static_cast<std::size_t>(part.source->shape().at(0));
}

class LookupConcat {
 public:
  explicit LookupConcat(const Preparation& p);
  void run();

 private:
  static constexpr std::size_t kFew = 64;

  void prefetch() const;
  void copy(const Part& part);
  void look_up(const Part& part);
  void pull(const Part& part);
  const float* row(const Part& part, std::span<const std::int64_t> ids, std::size_t i) const;

  const Operator* op_;
  RowSource* source_;
  Tensor* out_;
  /// In the order of the lookups.
  std::vector<Part> parts_;
  std::size_t columns_ = 0;
  Shape shape_ = Shape(2);
  std::vector<float> zeros_;
  std::vector<std::uint64_t> keys_;
  std::vector<float> pulled_;
  /// By id, its place in pulled_; only where an id is padding.
  std::vector<std::size_t> places_;
};

LookupConcat::LookupConcat(const Preparation& p) : op_(&p.op), source_(p.rows), out_(p.output(0)) {
  const auto pools = attribute<std::vector<std::string>>(p.op, "pools");
  const auto parameters = attribute<std::vector<std::string>>(p.op, "parameters");
  const auto widths = attribute<std::vector<std::int64_t>>(p.op, "widths");
  const auto paddings = attribute<std::vector<std::int64_t>>(p.op, "paddings");
  std::vector<Part> parts;
  std::size_t widest = 0;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const auto width = static_cast<std::size_t>(widths[i]);
    parts.push_back({p.input(2 * i), p.input(2 * i + 1), pools[i], parameters[i], p.op.inputs[2 * i + 1],
                     p.op.inputs[2 * i], width, columns_, paddings[i]});
    columns_ += width;
    widest = std::max(widest, width);
    if (parts.back().table != nullptr || pools[i] == "copy" || source_ != nullptr) continue;
    fail(p.op, "there is no parameter server to look rows up",
         "train through fleet.distributed_optimizer, or use embedding");
  }
  zeros_.resize(widest, 0.0f);
  for (const std::int64_t i : attribute<std::vector<std::int64_t>>(p.op, "order"))
    parts_.push_back(parts.at(static_cast<std::size_t>(i)));
}

void LookupConcat::run() {
  const std::size_t examples = part_examples(parts_.front());
  shape_[0] = static_cast<std::int64_t>(examples);
  shape_[1] = static_cast<std::int64_t>(columns_);
  out_->resize(DataType::float32, shape_);
  out_->offsets.clear();
  if (examples <= kFew) prefetch();
  for (const Part& part : parts_) {
    const std::size_t others = part_examples(part);
    if (others != examples) {
      fail(*op_, "'" + parts_.front().ids_name + "' has " + std::to_string(examples) + " examples, '" +
                     part.ids_name + "' has " + std::to_string(others));
    }
    part.pool == "copy" ? copy(part) : look_up(part);
  }
}

/// Of a small batch all rows at once: looking ahead within one slot hides no memory latency there.
void LookupConcat::prefetch() const {
  for (const Part& part : parts_) {
    if (part.table == nullptr) continue;
    const auto rows = static_cast<std::uint64_t>(part.table->shape()[0]);
    const float* table = part.table->values<float>().data();
    for (const std::int64_t id : part.source->values<std::int64_t>()) {
      if (static_cast<std::uint64_t>(id) >= rows) continue;
      // Rows begin anywhere: most that are shorter than a line of the cache lie in two.
      const float* row = table + static_cast<std::uint64_t>(id) * part.width;
      __builtin_prefetch(row);
      __builtin_prefetch(row + part.width - 1);
    }
  }
}

void LookupConcat::copy(const Part& part) {
  const float* from = part.source->values<float>().data();
  float* to = out_->values<float>().data() + part.begin;
  const std::size_t examples = part.source->size() / std::max<std::size_t>(part.width, 1);
  for (std::size_t r = 0; r < examples; ++r, from += part.width, to += columns_)
    std::memcpy(to, from, part.width * sizeof(float));
}

/// The rows of all ids but the padding, from outside.
void LookupConcat::pull(const Part& part) {
  const auto ids = part.source->values<std::int64_t>();
  keys_.clear();
  places_.clear();
  for (const std::int64_t id : ids) {
    places_.push_back(keys_.size());
    if (part.padding < 0 || id != part.padding) keys_.push_back(static_cast<std::uint64_t>(id));
  }
  pulled_.resize(keys_.size() * part.width);
  source_->pull_rows(part.parameter, keys_, pulled_);
}

[[gnu::always_inline]] inline const float* LookupConcat::row(const Part& part,
                                                             std::span<const std::int64_t> ids,
                                                             std::size_t i) const {
  constexpr std::size_t kAhead = 16;
  const std::int64_t id = ids[i];
  if (part.padding >= 0 && id == part.padding) return zeros_.data();
  if (part.table == nullptr) return pulled_.data() + places_[i] * part.width;
  const auto rows = static_cast<std::uint64_t>(part.table->shape()[0]);
  const float* table = static_cast<const float*>(part.table->data());
  if (i + kAhead < ids.size()) {
    const auto next = static_cast<std::uint64_t>(ids[i + kAhead]);
    if (next < rows) __builtin_prefetch(table + next * part.width);
  }
  if (static_cast<std::uint64_t>(id) < rows) return table + static_cast<std::uint64_t>(id) * part.width;
  throw Error(ErrorKind::data,
              "id " + std::to_string(id) + " in '" + part.ids_name + "' is outside of '" + part.table_name +
                  "', which has " + std::to_string(rows) + " rows",
              "make the embedding larger, or map ids into [0, " + std::to_string(rows) + ")");
}

void LookupConcat::look_up(const Part& part) {
  if (part.table == nullptr) pull(part);
  const auto ids = part.source->values<std::int64_t>();
  float* to = out_->values<float>().data() + part.begin;
  if (part.pool == "none") {
    for (std::size_t i = 0; i < ids.size(); ++i, to += columns_)
      std::memcpy(to, row(part, ids, i), part.width * sizeof(float));
    return;
  }
  const auto& offsets = part.source->offsets;
  if (offsets.empty()) fail(*op_, "'" + part.ids_name + "' has no offsets");
  for (std::size_t r = 0; r + 1 < offsets.size(); ++r, to += columns_) {
    std::fill_n(to, part.width, 0.0f);
    for (std::size_t i = offsets[r]; i < offsets[r + 1]; ++i) {
      const float* from = row(part, ids, i);
      for (std::size_t c = 0; c < part.width; ++c) to[c] += from[c];
    }
    const float factor = pool_factor(part.pool, offsets[r + 1] - offsets[r]);
    for (std::size_t c = 0; c < part.width; ++c) to[c] *= factor;
  }
}

Kernel prepare_lookup_concat(const Preparation& p) {
  // A Kernel is copied; what it works with is not.
  const auto work = std::make_shared<LookupConcat>(p);
  return [work] { work->run(); };
}

/// The gradient's way back from the concat to rows and their keys.
class LookupConcatRows {
 public:
  explicit LookupConcatRows(const Preparation& p)
      : gradient_(p.input(0)),
        values_(p.output(0)),
        keys_(p.output(1)),
        begins_(attribute<std::vector<std::int64_t>>(p.op, "begins")),
        pools_(attribute<std::vector<std::string>>(p.op, "pools")),
        width_(static_cast<std::size_t>(attribute<std::int64_t>(p.op, "width"))),
        paddings_(attribute<std::vector<std::int64_t>>(p.op, "paddings")),
        times_batch_(attribute(p.op, "times_batch", false)) {
    for (std::size_t i = 1; i < p.inputs(); ++i) ids_.push_back(p.input(i));
  }

  void run() {
    std::size_t total = 0;
    for (const Tensor* ids : ids_) total += ids->size();
    resize(total);
    kept_ = 0;
    for (std::size_t i = 0; i < ids_.size(); ++i) take(i);
    if (kept_ != total) resize(kept_);
  }

 private:
  void resize(std::size_t rows) {
    keys_shape_[0] = values_shape_[0] = static_cast<std::int64_t>(rows);
    values_shape_[1] = static_cast<std::int64_t>(width_);
    keys_->resize(DataType::int64, keys_shape_);
    values_->resize(DataType::float32, values_shape_);
  }

  void take(std::size_t part) {
    const Tensor& ids = *ids_[part];
    const std::int64_t padding = paddings_.at(part);
    const std::size_t columns = last(*gradient_);
    const float* from = gradient_->values<float>().data() + static_cast<std::size_t>(begins_[part]);
    const std::int64_t* id = ids.values<std::int64_t>().data();
    std::int64_t* key = keys_->values<std::int64_t>().data();
    float* to = values_->values<float>().data();
    const bool pooled = pools_[part] != "none";
    const std::size_t examples = pooled ? examples_of(ids) : ids.size();
    const float batch = times_batch_ ? static_cast<float>(examples_of(ids)) : 1.0f;
    const bool plain = !pooled && !times_batch_;
    for (std::size_t r = 0; r < examples; ++r, from += columns) {
      const std::size_t begin = pooled ? ids.offsets[r] : r, end = pooled ? ids.offsets[r + 1] : r + 1;
      const float factor = pooled ? pool_factor(pools_[part], end - begin) : 1.0f;
      for (std::size_t i = begin; i < end; ++i) {
        if (padding >= 0 && id[i] == padding) continue;
        key[kept_] = id[i];
        float* row = to + kept_++ * width_;
        if (plain) {
          std::memcpy(row, from, width_ * sizeof(float));
        } else {
          for (std::size_t c = 0; c < width_; ++c) row[c] = from[c] * factor * batch;
        }
      }
    }
  }

  const Tensor* gradient_;
  Tensor* values_;
  Tensor* keys_;
  std::vector<const Tensor*> ids_;
  std::vector<std::int64_t> begins_;
  std::vector<std::string> pools_;
  std::size_t width_;
  std::vector<std::int64_t> paddings_;
  bool times_batch_;
  std::size_t kept_ = 0;
  Shape keys_shape_ = Shape(1);
  Shape values_shape_ = Shape(2);
};

Kernel prepare_lookup_concat_rows(const Preparation& p) {
  const auto work = std::make_shared<LookupConcatRows>(p);
  return [work] { work->run(); };
}

Kernel prepare_concat_part(const Preparation& p) {
  return
      [g = p.input(0), dx = p.output(0),
       begin = static_cast<std::size_t>(attribute<std::int64_t>(p.op, "begin")),
       width = static_cast<std::size_t>(attribute<std::int64_t>(p.op, "width")), shape = Shape(2)]() mutable {
        const std::size_t columns = last(*g), rows = examples_of(*g);
        shape[0] = static_cast<std::int64_t>(rows);
        shape[1] = static_cast<std::int64_t>(width);
        dx->resize(DataType::float32, shape);
        const float* from = g->values<float>().data() + begin;
        float* to = dx->values<float>().data();
        for (std::size_t r = 0; r < rows; ++r)
          std::memcpy(to + r * width, from + r * columns, width * sizeof(float));
      };
}

}  // namespace

std::span<const OperatorDefinition> fused_operators() {
  static constexpr OperatorDefinition all[] = {
      {"linear_act",
       infer_fused,
       by_activation<Forward>,
       nullptr,
       {"(X [.., K], Weight [K, M], Bias [M] optional) -> Out", "activation(what linear makes)",
        "activation: relu, sigmoid or tanh"}},
      {"linear_act_grad",
       infer_fused,
       by_activation<Gradient>,
       nullptr,
       {"(X, Weight, Out, dOut) -> dX, dWeight, dBias", "the gradient of linear_act", "activation"}},
      {"linear_act_sgd",
       infer_fused,
       by_activation<Gradient>,
       nullptr,
       {"(X, Weight, Out, dOut, WeightRate or none, BiasRate or none) -> dX, Weight, Bias",
        "linear_act_grad that updates the parameters (linear.h)", "activation"}},
      {"lookup_concat",
       infer_fused,
       prepare_lookup_concat,
       nullptr,
       {"(Table1 or none, Source1, Table2 or none, Source2, ...) -> Out [examples, sum of widths]",
        "lookups and values side by side; rows come from Table, or without one from the RowSource's "
        "`parameters`",
        "pools: `copy` (Source is float32 [examples, width]), `none` (Source is ids, one for each "
        "example), or `sum`, `average`, `sqrt` over the ids of an example; paddings: as padding_idx; "
        "order: the parts in the order in which the program looked them up"}},
      {"lookup_concat_rows",
       infer_fused,
       prepare_lookup_concat_rows,
       nullptr,
       {"(dOut, Ids1, Ids2, ...) -> Values [n, width], Keys [n]", "as row_gradient",
        "begins: first columns"}},
      {"concat_part",
       infer_fused,
       prepare_concat_part,
       nullptr,
       {"(dOut) -> dX", "columns [begin, begin + width)", "begin; width"}},
  };
  return all;
}

}  // namespace fleetrun::engine
