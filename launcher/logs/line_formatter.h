// Writes one line of a process's output for a reader: a prefix before it, a newline after it, and on a
// terminal nothing in it that acts on the terminal but colours. Pure; how the line is cut into calls makes no
// difference.
#pragma once

#include <string>
#include <string_view>

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
  void guard(unsigned char byte, std::string& out);
  void start_sequence(unsigned char byte, std::string& out);
  void add_to_sequence(unsigned char byte, std::string& out);
  void give_up(std::string& out);

  bool guarded_;
  bool coloured_ = false;
  std::string held_;        // an escape or a character that is not whole yet
  std::size_t wanted_ = 0;  // bytes of the character that is held; 0: an escape is
};

/// `line`, which was written by a guarded LineFormatter, cut to `columns` of a terminal.
std::string cut_to_columns(std::string_view line, std::size_t columns);

}  // namespace fleetrun::launcher
