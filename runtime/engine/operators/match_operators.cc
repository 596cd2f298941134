// Which box of a place learns which box of the truth: pairs by overlap, the targets of the pairs, and those
// places without a pair that are worth learning from. No gradients.
//
// A pair is the row, within the picture's own rows, that a column has; -1 is none.
// Source: Liu et al., SSD: Single Shot MultiBox Detector, 2016.

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/operators/sequences.h"

namespace fleetrun::engine {

namespace {

/// Overlaps below count as none.
constexpr float kLeast = 1e-6f;

/// Rows and columns of one picture.
struct Pairing {
  const float* distances;
  std::size_t rows, columns;
  std::int32_t* pairs;
  float* paired;

  float at(std::size_t row, std::size_t column) const { return distances[row * columns + column]; }
  void pair(std::size_t row, std::size_t column) const {
    pairs[column] = static_cast<std::int32_t>(row);
    paired[column] = at(row, column);
  }
  bool is_free(std::size_t column) const { return pairs[column] < 0; }

  /// Each row takes a column of its own, the nearest pair first.
  void by_turns() const {
    std::vector<std::size_t> left(rows);
    std::iota(left.begin(), left.end(), std::size_t{0});
    while (!left.empty()) {
      float best = 0.0f;
      std::size_t row = 0, column = columns;
      for (std::size_t j = 0; j < columns; ++j) {
        for (const std::size_t i : left) {
          if (!is_free(j) || at(i, j) < kLeast || at(i, j) <= best) continue;
          best = at(i, j);
          row = i;
          column = j;
        }
      }
      if (column == columns) return;
      pair(row, column);
      std::erase(left, row);
    }
  }

  /// Each column that is left takes the nearest row, if that is as near as `threshold`.
  void rest(float threshold) const {
    for (std::size_t j = 0; j < columns; ++j) {
      if (!is_free(j)) continue;
      float best = -1.0f;
      for (std::size_t i = 0; i < rows; ++i) {
        if (at(i, j) < kLeast || at(i, j) < threshold || at(i, j) <= best) continue;
        best = at(i, j);
        pair(i, j);
      }
    }
  }
};

void infer_bipartite_match(Inference& inference) {
  inference.expect_inputs(1, 1);
  inference.expect_outputs(2, 2);
  inference.expect_type(0, DataType::float32);
  const Variable& x = inference.input(0);
  if (x.shape.size() != 2) inference.fail("distances are [rows, columns]");
  const std::int64_t pictures = x.lod_level == 0 ? 1 : -1;
  inference.set_output(0, DataType::int32, {pictures, x.shape[1]});
  inference.set_output(1, DataType::float32, {pictures, x.shape[1]});
}

Kernel prepare_bipartite_match(const Preparation& p) {
  const bool all = attribute(p.op, "match_type", std::string("bipartite")) == "per_prediction";
  const auto threshold = static_cast<float>(attribute(p.op, "dist_threshold", 0.5));
  return [x = p.input(0), pairs = p.output(0), paired = p.output(1), all, threshold] {
    const auto columns = static_cast<std::size_t>(x->shape()[1]);
    std::vector<std::size_t> offsets = x->offsets;
    if (offsets.empty()) offsets = {0, static_cast<std::size_t>(x->shape()[0])};
    const std::size_t pictures = offsets.size() - 1;
    const Shape shape{static_cast<std::int64_t>(pictures), x->shape()[1]};
    pairs->resize(DataType::int32, shape);
    paired->resize(DataType::float32, shape);
    std::ranges::fill(pairs->values<std::int32_t>(), -1);
    std::ranges::fill(paired->values<float>(), 0.0f);
    for (std::size_t n = 0; n < pictures; ++n) {
      const Pairing one{x->values<float>().data() + offsets[n] * columns, offsets[n + 1] - offsets[n],
                        columns, pairs->values<std::int32_t>().data() + n * columns,
                        paired->values<float>().data() + n * columns};
      one.by_turns();
      if (all) one.rest(threshold);
    }
  };
}

struct Assign {
  enum : std::size_t { kValues, kPairs, kNegatives };
};

void infer_target_assign(Inference& inference) {
  inference.expect_inputs(2, 3);
  inference.expect_outputs(2, 2);
  inference.expect_type(Assign::kPairs, DataType::int32);
  const Variable& values = inference.input(Assign::kValues);
  const Shape& pairs = inference.input(Assign::kPairs).shape;
  if (values.shape.size() != 3 || pairs.size() != 2) {
    inference.fail("values are [rows, columns, width], pairs [n, columns]");
  }
  if (values.lod_level == 0) inference.fail("the values are not those of pictures", "give them lod_level=1");
  if (values.type != DataType::float32 && values.type != DataType::int32 && values.type != DataType::int64) {
    inference.fail("the values are not float32, int32 or int64");
  }
  if (is_given(inference.op(), Assign::kNegatives))
    inference.expect_type(Assign::kNegatives, DataType::int32);
  inference.set_output(0, values.type, {pairs[0], pairs[1], values.shape[2]});
  inference.set_output(1, DataType::float32, {pairs[0], pairs[1], 1});
}

/// The pairs, -1 for each negative; weights of both.
std::vector<std::int32_t> weighed(const Operator& op, const Tensor& pairs, const Tensor* negatives,
                                  std::span<float> weights) {
  const auto given = pairs.values<std::int32_t>();
  std::vector<std::int32_t> rows(given.begin(), given.end());
  for (std::size_t i = 0; i < rows.size(); ++i) weights[i] = rows[i] < 0 ? 0.0f : 1.0f;
  if (negatives == nullptr) return rows;
  const auto columns = static_cast<std::size_t>(pairs.shape()[1]);
  const auto chosen = negatives->values<std::int32_t>();
  if ((negatives->offsets.size() - 1) * columns != rows.size())
    fail(op, "the negatives are those of another number of pictures");
  for (std::size_t n = 0; n + 1 < negatives->offsets.size(); ++n) {
    for (std::size_t i = negatives->offsets[n]; i < negatives->offsets[n + 1]; ++i) {
      const auto column = static_cast<std::size_t>(chosen[i]);
      if (column >= columns) fail(op, "a negative is not a column");
      rows[n * columns + column] = -1;
      weights[n * columns + column] = 1.0f;
    }
  }
  return rows;
}

template <class T>
void assign_targets(const Operator& op, const Tensor& values, const std::vector<std::int32_t>& rows,
                    std::size_t columns, Tensor& out, T mismatch) {
  const auto own = static_cast<std::size_t>(values.shape()[1]);
  const auto width = static_cast<std::size_t>(values.shape()[2]);
  if ((values.offsets.size() - 1) * columns != rows.size())
    fail(op, "the pairs are those of another number of pictures");
  T* to = out.values<T>().data();
  for (std::size_t i = 0; i < rows.size(); ++i, to += width) {
    const std::size_t row = values.offsets[i / columns] + static_cast<std::size_t>(std::max(rows[i], 0));
    if (rows[i] < 0) {
      std::fill_n(to, width, mismatch);
    } else if (row < values.offsets[i / columns + 1]) {
      std::copy_n(values.values<T>().data() + (row * own + i % columns % own) * width, width, to);
    } else {
      fail(op, "a pair is not a row of its picture");
    }
  }
}

Kernel prepare_target_assign(const Preparation& p) {
  return [op = &p.op, values = p.input(Assign::kValues), pairs = p.input(Assign::kPairs),
          negatives = p.input(Assign::kNegatives), out = p.output(0), weight = p.output(1),
          mismatch = attribute(p.op, "mismatch_value", std::int64_t{0})] {
    const Shape& shape = pairs->shape();
    out->resize(values->type(), {shape[0], shape[1], values->shape()[2]});
    weight->resize(DataType::float32, {shape[0], shape[1], 1});
    const auto rows = weighed(*op, *pairs, negatives, weight->values<float>());
    const auto assign = [&]<class T>(T other) {
      assign_targets(*op, *values, rows, static_cast<std::size_t>(shape[1]), *out, other);
    };
    if (values->type() == DataType::float32) assign(static_cast<float>(mismatch));
    if (values->type() == DataType::int32) assign(static_cast<std::int32_t>(mismatch));
    if (values->type() == DataType::int64) assign(mismatch);
  };
}

void infer_mine_hard_examples(Inference& inference) {
  inference.expect_inputs(3, 3);
  inference.expect_outputs(1, 1);
  inference.expect_type(0, DataType::float32);
  inference.expect_type(1, DataType::int32);
  inference.expect_type(2, DataType::float32);
  if (inference.input(1).shape.size() != 2) inference.fail("pairs are [n, columns]");
  inference.set_output(0, DataType::int32, {-1, 1}, 1);
}

Kernel prepare_mine_hard_examples(const Preparation& p) {
  return [op = &p.op, loss = p.input(0), pairs = p.input(1), paired = p.input(2), out = p.output(0),
          ratio = static_cast<float>(attribute(p.op, "neg_pos_ratio", 3.0)),
          threshold = static_cast<float>(attribute(p.op, "neg_dist_threshold", 0.5))] {
    check_size(*op, loss, pairs->size(), "tensor of losses");
    check_size(*op, paired, pairs->size(), "tensor of distances");
    const auto columns = static_cast<std::size_t>(pairs->shape()[1]);
    std::vector<std::int32_t> chosen;
    std::vector<std::size_t> offsets{0};
    for (std::size_t begin = 0; begin < pairs->size(); begin += columns) {
      const auto of = [&](const Tensor* tensor) { return tensor->values<float>().subspan(begin, columns); };
      const auto pair = pairs->values<std::int32_t>().subspan(begin, columns);
      std::vector<std::int32_t> free;
      for (std::size_t i = 0; i < columns; ++i) {
        if (pair[i] == -1 && of(paired)[i] < threshold) free.push_back(static_cast<std::int32_t>(i));
      }
      std::ranges::stable_sort(free, std::greater(),
                               [&](std::int32_t i) { return of(loss)[static_cast<std::size_t>(i)]; });
      const auto positives =
          static_cast<float>(std::ranges::count_if(pair, [](std::int32_t each) { return each != -1; }));
      free.resize(std::min(free.size(), static_cast<std::size_t>(positives * ratio)));
      std::ranges::sort(free);
      chosen.insert(chosen.end(), free.begin(), free.end());
      offsets.push_back(chosen.size());
    }
    out->resize(DataType::int32, {static_cast<std::int64_t>(chosen.size()), 1});
    std::ranges::copy(chosen, out->values<std::int32_t>().begin());
    out->offsets = std::move(offsets);
  };
}

}  // namespace

std::span<const OperatorDefinition> match_operators() {
  static constexpr OperatorDefinition all[] = {
      {"bipartite_match",
       infer_bipartite_match,
       prepare_bipartite_match,
       nullptr,
       {"(Distances [rows, m]) -> Pairs int32 [n, m], Paired [n, m]",
        "the row that each column has, of those of its picture, and how near it is: each row takes the "
        "column that is nearest and free, the nearest pair first",
        "match_type = bipartite: with per_prediction the columns that are left take their nearest row, if "
        "that is as near as dist_threshold = 0.5"}},
      {"target_assign",
       infer_target_assign,
       prepare_target_assign,
       nullptr,
       {"(X [rows, m or 1, k], Pairs int32 [n, m], [Negatives int32 [some, 1]]) -> Out [n, m, k], Weight [n, "
        "m, 1]",
        "the values of each column's row, and the weight 1; of one without a row mismatch_value, and the "
        "weight 0, or 1 where it is one of Negatives",
        "mismatch_value = 0"}},
      {"mine_hard_examples",
       infer_mine_hard_examples,
       prepare_mine_hard_examples,
       nullptr,
       {"(Loss [n, m], Pairs int32 [n, m], Paired [n, m]) -> Negatives int32 [some, 1]",
        "of each picture the columns without a row whose loss is largest",
        "neg_pos_ratio = 3: at most so many for each column with a row; neg_dist_threshold = 0.5: only those "
        "that are nearer to no row"}},
  };
  return all;
}

}  // namespace fleetrun::engine
