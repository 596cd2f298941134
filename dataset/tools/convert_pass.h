// Data files into columnar files: each into one of its own, or all into one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dataset/columnar/columnar_file.h"
#include "dataset/columnar/columnar_writer.h"
#include "dataset/tools/bad_line_rule.h"
#include "dataset/tools/check_pass.h"
#include "dataset/tools/input.h"

namespace fleetrun::dataset {

/// One file to write.
struct Conversion {
  std::vector<std::string> from;  // in this order
  std::string to;

  bool operator==(const Conversion&) const = default;
};

/// An `out` that ends in ".frc" or ".parquet" is one file for all; else a directory, where each gets its own
/// name with ".frc" behind it. Throws: Error(usage) where two files would get one name, or one would be
/// written over itself.
std::vector<Conversion> plan_conversions(const std::vector<std::string>& files, const std::string& out);

struct ConvertOptions {
  std::uint64_t bad_lines_allowed = 0;
  std::uint32_t block_rows = kColumnarBlockRows;
  std::size_t threads = 1;  // conversions at the same time
  /// Called by one thread at a time for each file that is complete.
  std::function<void(const Conversion&, const ColumnarWritten&)> done = {};
};

/// The bad lines that were left out, the first of them by name, in the order in which they were met.
/// Throws: Error(data), Error(host), Error(spawn); what is not complete then is not there.
std::vector<BadLine> convert(const ToolInput& input, const std::vector<Conversion>& conversions,
                             const ConvertOptions& options);

}  // namespace fleetrun::dataset
