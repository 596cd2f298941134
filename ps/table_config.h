// What a table is: its kind, width, update rule and initial values. Servers and trainers build the same list
// from the same program and compare fingerprints when they meet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::ps {

/// How a gradient changes values. The names and formulas are those of the optimizers the user wrote:
///   sgd      w -= lr * g
///   adagrad  a += g*g; w -= lr * g / (sqrt(a) + epsilon), per value; a starts at initial_accumulator
///   adam     bias-corrected, with the step counted per row in a sparse table and per table in a dense one
///   sum      w += g (closed-form tests, counters)
struct UpdateRule {
  enum class Kind { sgd, adagrad, adam, sum };
  Kind kind = Kind::sgd;
  float learning_rate = 0.001f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float initial_accumulator = 0.0f;

  bool operator==(const UpdateRule&) const = default;
};

/// First values of a row. A pure function of (seed, table name, key, column): the same whatever the number of
/// servers and the order of first pulls.
struct Initializer {
  enum class Kind { constant, uniform, normal, truncated_normal };
  Kind kind = Kind::constant;
  /// constant: a = value. uniform: a = low, b = high. normal, truncated_normal (at two standard deviations):
  /// a = mean, b = standard deviation.
  double a = 0.0;
  double b = 0.0;
  std::uint64_t seed = 0;

  bool operator==(const Initializer&) const = default;
};

struct TableConfig {
  enum class Kind { dense, sparse };
  std::uint32_t id = 0;
  std::string name;
  Kind kind = Kind::dense;
  /// Dense: floats of the whole table, split into contiguous blocks over the servers. Sparse: floats of one
  /// row; rows go to the server that the hash of their key names.
  std::uint64_t width = 0;
  UpdateRule rule;
  /// Sparse tables only; a dense table gets its first values by Client::set_dense.
  Initializer initializer;

  bool operator==(const TableConfig&) const = default;
};

/// async: a push is applied when it arrives. sync: the pushes of one step, one of every participant, are
/// averaged in the order (trainer, thread) and applied together, so that two runs give the same bits.
enum class Mode { async, sync };

std::string_view to_string(UpdateRule::Kind kind) noexcept;
std::string_view to_string(Initializer::Kind kind) noexcept;
std::string_view to_string(TableConfig::Kind kind) noexcept;
std::string_view to_string(Mode mode) noexcept;

/// Everything about a table in one line: the fingerprint that servers and trainers compare, and what an error
/// shows when they differ. Equal texts mean equal tables.
std::string describe(const TableConfig& table);

/// Throws: Error(config) naming the table whose width, rule or initializer cannot work, or two tables that
/// have the same id or name.
void check_tables(const std::vector<TableConfig>& tables);

}  // namespace fleetrun::ps
