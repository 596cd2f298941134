// What a table is: its kind, width, update rule and initial values. Servers and trainers build the same list
// from the same program and compare fingerprints when they meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ps/base/clip.h"

namespace fleetrun::ps {

/// How a gradient g changes values w: kUpdateRules has the formulas. A new rule is a row there, and its loop
/// in ps/table/update_rule.cc.
struct UpdateRule {
  enum class Kind {
    sgd,
    adagrad,
    adam,
    sum,
    momentum,
    ftrl,
    shared_adagrad,
    std_adagrad,
    pow_adam,
    shared_adam,
    adam_d2sum,
    summary,
    rmsprop,
    adamax,
    adadelta,
  };
  Kind kind = Kind::sgd;
  float learning_rate = 0.001f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float initial_accumulator = 0.0f;
  float momentum = 0.9f;
  bool nesterov = false;
  float rho = 0.95f;
  bool centered = false;
  float l1 = 0.0f;
  float l2 = 0.0f;
  float learning_rate_power = -0.5f;
  /// Added to each gradient before the rule: l2_decay * w + l1_decay * sign(w),
  /// for the rows that a push touches.
  float l1_decay = 0.0f;
  float l2_decay = 0.0f;
  /// adam: w is first multiplied by 1 - lr * own_decay (AdamW).
  float own_decay = 0.0f;
  /// Values are clipped to [low, high] after each update.
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  /// The learning rate is multiplied by the rate that comes with each push (StepClient::set_rate).
  bool is_scheduled = false;

  bool operator==(const UpdateRule&) const = default;
};

/// One update rule, as scripts, checkpoints and the manual name it.
struct UpdateRuleRow {
  UpdateRule::Kind kind;
  std::string_view name;
  std::string_view formula;
  std::string_view state;  // what a row of w values keeps beside them, in floats
  std::size_t floats_per_value = 0, floats_per_row = 0;
};

/// In the order of Kind. The first ones have the names and formulas of the optimizers that users write, the
/// others those of Paddle's parameter server (its sparse_sgd_rule and ctr_accessor, observed in version
/// 2.6.2).
inline constexpr UpdateRuleRow kUpdateRules[] = {
    {UpdateRule::Kind::sgd, "sgd", "w -= lr * g", "none"},
    {UpdateRule::Kind::adagrad, "adagrad",
     "a += g * g, w -= lr * g / (sqrt(a) + epsilon), per value; a starts at initial_accumulator", "a[w]", 1},
    {UpdateRule::Kind::adam, "adam",
     "bias-corrected, with the step counted per row in a sparse table and per table in a dense one",
     "m[w], v[w]", 2},
    {UpdateRule::Kind::sum, "sum", "w += g; for counters and differences of GEO trainers", "none"},
    {UpdateRule::Kind::momentum, "momentum",
     "v = momentum * v + g, w -= lr * v; with nesterov w -= lr * (g + momentum * v)", "v[w]", 1},
    {UpdateRule::Kind::ftrl, "ftrl",
     "n += g * g, z += g - (n_new^-p - n_old^-p) / lr * w, w = |z| <= l1 ? 0 : (sign(z) * l1 - z) / "
     "(n_new^-p / "
     "lr + 2 * l2), p = learning_rate_power; n starts at initial_accumulator",
     "n[w], z[w]", 2},
    {UpdateRule::Kind::shared_adagrad, "shared_adagrad",
     "one a per row: w -= lr * (g / scale) * sqrt(a0 / (a0 + a)), then a += mean((g / scale)^2); a starts at "
     "0, a0 "
     "is initial_accumulator, scale is the push's show where the accessor scales by it",
     "a[1]", 0, 1},
    {UpdateRule::Kind::std_adagrad, "std_adagrad", "shared_adagrad with an a of each value", "a[w]", 1},
    {UpdateRule::Kind::pow_adam, "pow_adam",
     "adam whose powers of beta1 and beta2 are kept in the row, starting at beta; epsilon outside the "
     "correction: w "
     "-= lr * sqrt(1 - p2) / (1 - p1) * m / (sqrt(v) + epsilon)",
     "m[w], v[w], p1, p2", 2, 2},
    {UpdateRule::Kind::shared_adam, "shared_adam",
     "pow_adam with one m and one v per row (the means over the row)", "m[1], v[1], p1, p2", 0, 4},
    {UpdateRule::Kind::adam_d2sum, "adam_d2sum",
     "dense tables: d = 0.9999 * d + 1, s = 0.9999 * s + g * g, v = 0.99 * (v + g) - g, "
     "w += lr * v * sqrt((d + e) / (s + e)); e = epsilon * d",
     "d[w], s[w], v[w]", 3},
    {UpdateRule::Kind::summary, "summary", "dense tables of data_norm: w = 0.999999 * w + g", "none"},
    {UpdateRule::Kind::rmsprop, "rmsprop",
     "s = rho * s + (1 - rho) * g * g, v = momentum * v + lr * g / sqrt(s + epsilon), w -= v; centered, with "
     "s - m * m instead of s, m = rho * m + (1 - rho) * g",
     "s[w], v[w], m[w]", 3},
    {UpdateRule::Kind::adamax, "adamax",
     "m = beta1 * m + (1 - beta1) * g, u = max(|g|, beta2 * u + epsilon), w -= lr / (1 - beta1^t) * m / u; t "
     "is counted per row in a sparse table and per table in a dense one",
     "m[w], u[w]", 2},
    {UpdateRule::Kind::adadelta, "adadelta",
     "s = rho * s + (1 - rho) * g * g, d = sqrt((e + epsilon) / (s + epsilon)) * g, "
     "e = rho * e + (1 - rho) * d * d, w -= lr * d",
     "s[w], e[w]", 2},
};

inline const UpdateRuleRow& row_of(UpdateRule::Kind kind) noexcept {
  return kUpdateRules[static_cast<std::size_t>(kind)];
}

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

/// What a row keeps beside its values, and when its columns beyond the first exist. Names and defaults are
/// those of Paddle's accessors (the_one_ps.proto); the score of a row is
/// (show - click) * nonclk_coeff + click * click_coeff.
struct Accessor {
  /// plain: nothing. sparse: slot, unseen days, delta score, show, click. ctr: the same, and a pull returns
  /// show and click before the values.
  enum class Kind { plain, sparse, ctr };
  Kind kind = Kind::plain;
  float nonclk_coeff = 0.1f;
  float click_coeff = 1.0f;
  /// Columns 1 and up of a row are created once its score is at least this;
  /// until then a pull gives zeros there.
  float embedx_threshold = 0.0f;
  /// Save modes 1 and 2: rows of at least this score, …
  float base_threshold = 0.0f;
  /// … whose delta score is at least this, …
  float delta_threshold = 0.0f;
  /// … and that were seen within so many days.
  float delta_keep_days = 16.0f;
  /// Shrink: show and click are multiplied by this; rows below delete_threshold, or unseen for longer, go.
  float show_click_decay_rate = 1.0f;
  float delete_threshold = 0.0f;
  float delete_after_unseen_days = 30.0f;
  /// Rows unseen for longer move to the disk tier when a checkpoint is saved.
  float ssd_unseenday_threshold = 1.0f;
  /// ctr: gradients are divided by the push's show, by rules that know it (shared_adagrad,
  /// std_adagrad). sparse: always.
  bool show_scale = true;
  /// Column 0 starts at 0 instead of by the initializer.
  bool zero_init = false;
  /// The rule of column 0; the table's own for the others, and for all when this is empty.
  std::optional<UpdateRule> embed_rule = {};

  bool operator==(const Accessor&) const = default;
};

/// When a key that is seen in training gets a row. Until then its pulls give initial values,
/// and its pushes only count.
struct Admission {
  /// count: from its threshold-th push on, counted exactly. count_bloom: the same by counting Bloom filter,
  /// whose memory is bounded and which may admit early, never late.
  /// probability: a pure function of seed and key.
  enum class Kind { always, count, count_bloom, probability };
  Kind kind = Kind::always;
  std::uint32_t threshold = 1;
  double probability = 1.0;
  std::uint64_t seed = 0;

  bool operator==(const Admission&) const = default;
};

struct TableConfig {
  enum class Kind { dense, sparse };
  std::uint32_t id = 0;
  std::string name;
  Kind kind = Kind::dense;
  /// Dense: floats of the whole table, split into contiguous blocks over the servers. Sparse: trained floats
  /// of one row; rows go to the server that the hash of their key names.
  std::uint64_t width = 0;
  UpdateRule rule;
  /// Sparse tables only; a dense table gets its first values by Client::set_dense.
  Initializer initializer;
  Accessor accessor = {};
  Admission admission = {};
  /// Dense tables: no server gets a block of fewer floats, so that small parameters lie on one server.
  std::uint64_t min_block = 0;
  Clip clip = {};
  /// Sparse tables: cold rows may leave memory for the server's disk (ServerOptions).
  bool on_disk = false;
  /// Sparse tables only: rows that no push or assign has touched for so long go; 0: none.
  std::uint32_t expire_seconds = 0;

  bool operator==(const TableConfig&) const = default;
};

/// Floats that a pull of a sparse table gives per key: the width,
/// and show and click before it for accessor ctr.
inline std::uint64_t pulled_width(const TableConfig& table) noexcept {
  return table.width + (table.accessor.kind == Accessor::Kind::ctr ? 2 : 0);
}

/// What a trainer's push means. A server knows sync, and applies all others as they come; what makes the
/// difference is the trainer's side.
///   async       each push is applied when it arrives
///   sync        the pushes of one step, one of every participant, are averaged in the order (trainer,
///               thread) and applied together, so that two runs give the same bits
///   half_async  the threads of one trainer step together and push their mean;
///               trainers do not wait for each other
///   geo         trainers train copies of their own and exchange differences every so many steps
enum class Mode { async, sync, half_async, geo };

std::string_view to_string(UpdateRule::Kind kind) noexcept;
std::string_view to_string(Initializer::Kind kind) noexcept;
std::string_view to_string(TableConfig::Kind kind) noexcept;
std::string_view to_string(Accessor::Kind kind) noexcept;
std::string_view to_string(Admission::Kind kind) noexcept;
std::string_view to_string(Mode mode) noexcept;

/// Everything about a table in one line: the fingerprint that servers and trainers compare, and what an error
/// shows when they differ. Equal texts mean equal tables.
std::string describe(const TableConfig& table);

/// The mode of that name. Throws: Error(config) naming the modes.
Mode mode_of(std::string_view name);

/// Throws: Error(config) naming the table that cannot work, or two that have the same id or name.
void check_tables(const std::vector<TableConfig>& tables);

}  // namespace fleetrun::ps
