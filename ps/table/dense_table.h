// One server's block of a dense table: values and optimizer state, updated in stripes so that several
// trainers can pull and push at once.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "ps/base/table_config.h"
#include "ps/table/update_rule.h"

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once; a stripe of 16,384 floats is read and updated
/// as one, the block is not.
class DenseTable {
 public:
  /// `size` floats of the table `config` (a dense one), those that this server holds.
  DenseTable(const TableConfig& config, std::uint64_t size);

  const TableConfig& config() const noexcept { return config_; }
  std::uint64_t size() const noexcept { return values_.size(); }

  /// False until set() or restore() gave the block its first values; an empty block has none to wait for.
  bool has_values() const;
  void pull(std::span<float> values) const;
  /// `rate`: the push's, for a rule that is scheduled.
  void push(std::span<const float> gradients, float rate = 1.0f);
  /// Adds to the values, past the rule: for a copy that follows a server (geo).
  void add(std::span<const float> changes);
  /// First values; the optimizer state is reset.
  void set(std::span<const float> values);

  /// What save writes, and a cut of a dense table: a copy. State has state_floats_per_value() floats for each
  /// value, first all of one kind, then all of the next (adam: m, then v).
  struct Contents {
    std::uint32_t steps = 0;
    bool has_values = false;
    std::vector<float> values;
    std::vector<float> state;
  };
  Contents contents() const;
  /// Takes contents of the same sizes.
  void restore(Contents contents);
  std::size_t state_floats_per_value() const noexcept { return updater_.dense_state_floats(); }

 private:
  static constexpr std::size_t kStripe = 16384;
  template <class Act>
  void for_stripes(Act act) const;

  TableConfig config_;
  Updater updater_;
  mutable std::mutex steps_mutex_;  // guards steps_ and has_values_
  std::uint32_t steps_ = 0;
  bool has_values_ = false;
  mutable std::vector<std::mutex> stripe_mutexes_;  // stripe i guards its part of values_ and state_
  std::vector<float> values_;
  std::vector<float> state_;  // by stripe: the stripe's m, then its v
};

}  // namespace fleetrun::ps
