// Parquet, by pyarrow in a process of its own (runtime/python/fleetrun/_parquet.py and columns.py): text out
// of a file, and a file out of columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dataset/base/batch.h"

namespace fleetrun::dataset {

inline constexpr std::string_view kParquetSuffix = ".parquet";

/// Whether the name is that of a Parquet file.
bool is_parquet(const std::string& file) noexcept;

/// The program that makes MultiSlot text of a Parquet file on its standard input.
std::vector<std::string> parquet_text_command(const std::vector<Slot>& slots);

/// A slot for each column. Throws: Error(data) naming the file, with what the program said.
std::vector<Slot> parquet_slots(const std::string& file);

/// Writes the rows of a columnar file as Parquet. Throws: as parquet_slots().
void write_parquet(const std::string& columns, const std::string& to);

}  // namespace fleetrun::dataset
