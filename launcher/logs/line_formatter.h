// Writes one line of a process's output for a reader: a prefix before it, a newline after it, and on a
// terminal nothing in it that acts on the terminal but colours. Pure; how the line is cut into calls makes no
// difference.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/terminal_text.h"

namespace fleetrun::launcher {

class LineFormatter {
 public:
  /// `guarded`: control characters but tabs and colours become visible ("^G", "\x9b"), as does what is not
  /// UTF-8. Otherwise bytes stay what they are.
  explicit LineFormatter(bool guarded = false) noexcept : guarded_(guarded) {}

  void begin(std::string_view prefix, std::string& out);
  void add(std::string_view part, std::string& out);
  /// Ends the line, and what it coloured. `newline` is what is to follow it.
  void end(std::string& out, std::string_view newline = "\n");

 private:
  bool guarded_;
  TerminalText text_ = TerminalText::of_line({"| "});
};

/// `line`, which was written by a guarded LineFormatter, cut to `columns` of a terminal.
std::string cut_to_columns(std::string_view line, std::size_t columns);

}  // namespace fleetrun::launcher
