// PREFIX.pdmodel: the program of a saved model as JSON, with what it is fed and what is fetched from it.
// Python writes it (fleetrun/static/io.py).
#pragma once

#include <string>
#include <vector>

#include "ps/base/table_config.h"
#include "runtime/engine/program.h"

namespace fleetrun::inference {

struct ModelFile {
  engine::Program program;
  /// Data variables, in the order in which the model was saved with them.
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  /// Of the rows that sparse_embedding looks up; empty where the program has none.
  std::vector<ps::TableConfig> tables;
};

/// Throws: Error(data) naming the file, for one that cannot be read, is not such a file,
/// or whose operators do not fit together.
ModelFile read_model(const std::string& path);

}  // namespace fleetrun::inference
