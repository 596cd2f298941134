// The line that ended an epoch, as bytes (runtime/base/failed_batch), and read again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dataset/base/batch.h"
#include "dataset/text/line_prefixes.h"
#include "dataset/text/multi_slot_parser.h"

namespace fleetrun::dataset {

struct FailedLine {
  std::vector<Slot> slots;
  LinePrefixes prefixes;
  LineFault fault;
  std::string text;
};

/// `error`: what is said of it. Where the process has no file for it, nothing is kept.
void keep_failed_line(const FailedLine& line, const std::string& error) noexcept;

/// Throws: Error(data) for bytes that are no line.
FailedLine parse_failed_line(std::string_view bytes);

/// What is said of the line now, at the place where it was then; empty: it is an example.
std::string read_again(const FailedLine& line);

}  // namespace fleetrun::dataset
