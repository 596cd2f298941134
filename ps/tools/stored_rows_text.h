// Rows as they are stored, for people or as JSON. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ps/base/stored_rows.h"
#include "ps/base/table_config.h"

namespace fleetrun::ps {

/// The table of that name. Throws: Error(usage) naming those there are.
const TableConfig& find_table(const std::vector<TableConfig>& tables, const std::string& name);

/// A line for each key: its statistics where the table keeps some, and its values; of a dense table one line.
std::string stored_rows_text(const TableConfig& table, const std::vector<std::uint64_t>& keys,
                             const StoredRows& rows, bool json);

}  // namespace fleetrun::ps
