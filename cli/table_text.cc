#include "cli/table_text.h"

#include <algorithm>

namespace fleetrun::cli {
namespace {

/// Characters on a screen, of what is UTF-8.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string table_text(const Table& table, const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : table) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : table) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line.append(row[i]).append(i + 1 < row.size() ? widths[i] - width_of(row[i]) + 2 : 0, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text.append(indent).append(line).append("\n");
  }
  return text;
}

}  // namespace fleetrun::cli
