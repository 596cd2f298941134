// One row of a sparse table as a line of Paddle 2.6.2's checkpoints:
//
//   key slot unseen_days delta_score show click w[0] state of w[0] [w[1] … w[n-1] state of these]
//
// What is in brackets is there once the row is extended. State: nothing (sgd), one sum (shared adagrad), a
// sum each (std adagrad), m each, v each, power of beta1, power of beta2 (adam),
// m, v and the powers (shared adam).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ps/base/table_config.h"
#include "ps/table/initializer.h"
#include "ps/table/row_layout.h"
#include "ps/table/update_rule.h"

namespace fleetrun::ps {

/// Threads: immutable once made.
class PaddleRows {
 public:
  explicit PaddleRows(const TableConfig& config);

  struct Row {
    std::uint64_t key = 0;
    std::vector<float> floats;  // as ps/table/row_layout.h has them
  };
  /// Throws: Error(data) for a line that is none, Error(config) for a row of another width or rule.
  void parse(std::string_view line, Row& row) const;
  /// Appends the line, with its end; numbers in as many digits as they need to be read again as they are.
  void append_line(std::uint64_t key, const float* row, std::string& out) const;

 private:
  /// The state of columns that one rule updates together, whatever the order in which it lies.
  struct State {
    std::vector<float> first;   // sums, m
    std::vector<float> second;  // v
    float power1 = 0.0f;
    float power2 = 0.0f;
  };

  const UpdateRule& rule_of_column0() const noexcept;
  State parse_state(const UpdateRule& rule, std::size_t width, const float* numbers) const;
  void store_state(const UpdateRule& rule, const RowLayout::Part& part, const State& state, float* row) const;
  State load_state(const UpdateRule& rule, const RowLayout::Part& part, const float* row) const;

  State new_state(std::size_t width) const;
  void store_plain(const State& state, const State& rest, bool extended, Row& row) const;
  static void split_plain(State& state, State& rest);
  static void append_state(const UpdateRule& rule, const State& state, std::vector<float>& out);

  TableConfig config_;
  RowLayout layout_;
  RowInitializer initializer_;
};

}  // namespace fleetrun::ps
