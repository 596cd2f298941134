// What update operators and gradient clipping make of the row gradients of an embedding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::engine {

/// Gradients of equal keys added up; keys in ascending order.
class MergedRows {
 public:
  /// Throws: Error(data) for a key that is not below `rows`.
  void merge(const Tensor& keys, const Tensor& gradients, std::size_t width, std::size_t rows) {
    const auto all = keys.values<std::int64_t>();
    const float* from = gradients.values<float>().data();
    order_.resize(all.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(),
              [all](std::size_t a, std::size_t b) { return all[a] != all[b] ? all[a] < all[b] : a < b; });
    keys_.clear();
    values_.clear();
    for (const std::size_t i : order_) {
      if (all[i] < 0 || static_cast<std::size_t>(all[i]) >= rows) {
        throw Error(ErrorKind::data,
                    "a gradient for row " + std::to_string(all[i]) + " of " + std::to_string(rows) + " rows");
      }
      const float* row = from + i * width;
      if (keys_.empty() || keys_.back() != static_cast<std::size_t>(all[i])) {
        keys_.push_back(static_cast<std::size_t>(all[i]));
        values_.insert(values_.end(), row, row + width);
        continue;
      }
      float* sum = values_.data() + values_.size() - width;
      for (std::size_t c = 0; c < width; ++c) sum[c] += row[c];
    }
  }

  const std::vector<std::size_t>& keys() const { return keys_; }
  const float* values() const { return values_.data(); }

 private:
  std::vector<std::size_t> order_;
  std::vector<std::size_t> keys_;
  std::vector<float> values_;
};

}  // namespace fleetrun::engine
