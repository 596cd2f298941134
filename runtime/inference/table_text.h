// What a saved model says of the tables that its rows are in: as much of each as reading them takes.
#pragma once

#include <string>
#include <vector>

#include "ps/base/table_config.h"

namespace fleetrun::inference {

/// A JSON list. A table's learning rates and decays are left out.
std::string table_text(const std::vector<ps::TableConfig>& tables);

/// The other way. Throws: Error(data) saying what is wrong.
std::vector<ps::TableConfig> parse_tables(const std::string& text);

}  // namespace fleetrun::inference
