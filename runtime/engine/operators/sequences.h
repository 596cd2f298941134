// The rows of a tensor that belong to one sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine/operators.h"
#include "runtime/engine/operators/channels.h"

namespace fleetrun::engine {

struct SequenceRows {
  std::size_t begin, count;
};

/// Those of X, which is input `index`: by its offsets; or, with `length` (int64 or int32 [n]), the first
/// values of n times `most` rows. Throws: Error(config) for an X without sequences, Error(data) for a length
/// above `most`.
inline std::vector<SequenceRows> sequence_rows(const Operator& op, std::size_t index, const Tensor& x,
                                               const Tensor* length, std::size_t n, std::size_t most) {
  std::vector<SequenceRows> all;
  if (length == nullptr) {
    if (x.offsets.empty()) fail(op, "'" + op.inputs[index] + "' has no sequences");
    for (std::size_t i = 0; i + 1 < x.offsets.size(); ++i)
      all.push_back({x.offsets[i], x.offsets[i + 1] - x.offsets[i]});
    return all;
  }
  check_size(op, length, n, "length");
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t count = length->type() == DataType::int32 ? length->values<std::int32_t>()[i]
                                                                 : length->values<std::int64_t>()[i];
    if (count < 0 || static_cast<std::size_t>(count) > most) {
      fail_on_data(op, "a length of " + std::to_string(count) + " where there are " + std::to_string(most),
                   "give each sequence's own length");
    }
    all.push_back({i * most, static_cast<std::size_t>(count)});
  }
  return all;
}

/// Whether an optional input is there.
inline bool is_given(const Operator& op, std::size_t index) {
  return index < op.inputs.size() && !op.inputs[index].empty();
}

}  // namespace fleetrun::engine
