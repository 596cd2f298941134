// Rows of cells as lines with aligned columns.
#pragma once

#include <string>
#include <vector>

namespace fleetrun::cli {

using Table = std::vector<std::vector<std::string>>;

/// A line per row that begins with `indent`, two spaces between columns. Cells are UTF-8 that a terminal may
/// have; a row may have fewer of them than the others.
std::string table_text(const Table& table, const std::string& indent);

}  // namespace fleetrun::cli
