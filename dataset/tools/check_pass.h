// Files read by several threads, each file by one, into one summary.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dataset/text/multi_slot_parser.h"
#include "dataset/tools/input.h"
#include "dataset/tools/slot_summary.h"

namespace fleetrun::dataset {

struct BadLine {
  std::string file;
  LineFault fault;
};

struct CheckResult {
  std::uint64_t rows = 0;
  std::uint64_t bad_lines = 0;
  std::vector<BadLine> first_bad;  // in the order of the files, at most as many as are to be listed
  std::vector<SlotSummary> slots;
};

struct CheckOptions {
  std::size_t threads = 1;
  std::size_t listed = 20;
  /// Bad lines after which reading ends.
  std::uint64_t max_bad = UINT64_MAX;
  /// Called by this thread every 200 ms or so with the files and rows that are done; empty: never.
  std::function<void(std::size_t files, std::uint64_t rows)> progress = {};
};

/// Throws: Error(data), Error(spawn) of a file that cannot be read to its end.
CheckResult check_files_of(const ToolInput& input, const CheckOptions& options);

}  // namespace fleetrun::dataset
