// Where a line of text may end: at blanks, and in Chinese behind each character, but not before a mark that
// closes, or behind one that opens.
#pragma once

#include <string_view>
#include <vector>

namespace fleetrun {

/// What stays together on a line.
struct LineWord {
  std::string_view text;
  bool after_blank = false;
};

std::vector<LineWord> line_words(std::string_view text);

}  // namespace fleetrun
