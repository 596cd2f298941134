// First values of sparse rows: a pure function of (seed, table name, key, column), so that a row starts the
// same on any server, in any order of first pulls, and again after a restart.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ps/base/table_config.h"

namespace fleetrun::ps {

/// Threads: fill() may be called from several at once.
class RowInitializer {
 public:
  RowInitializer(const Initializer& initializer, std::string_view table_name) noexcept;

  /// The columns from `first` on; those before it stay as they are.
  void fill(std::uint64_t key, std::span<float> values, std::size_t first = 0) const noexcept;

 private:
  Initializer initializer_;
  std::uint64_t base_;
};

}  // namespace fleetrun::ps
