// The values of a save by the names of its tables, for programs that have them as arrays and no servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fleetrun::ps {

/// A table's values, without what its update rule and its accessor keep beside them.
struct SavedValues {
  std::string name;
  bool sparse = false;
  /// Sparse: floats per key.
  std::uint64_t width = 0;
  /// Sparse: in the order of `values`.
  std::vector<std::uint64_t> keys = {};
  std::vector<float> values = {};
};

/// Those of the newest save in `directory`, by any number of servers. Throws: Error(data) naming the file
/// that is damaged or missing; Error(config) of a save that has not all rows.
std::vector<SavedValues> read_saved_values(const std::string& directory);

}  // namespace fleetrun::ps
