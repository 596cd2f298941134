#include "launcher/cluster/message_text.h"

#include <cstdio>

namespace fleetrun::launcher {

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string shown(std::chrono::milliseconds time) {
  const double seconds = static_cast<double>(time.count()) / 1000;
  char text[32];
  if (seconds < 9.95) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (seconds < 119.5) {
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  } else {
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  }
  return text;
}

std::string listed(const std::vector<std::string>& names, std::size_t max) {
  std::string text;
  const std::size_t named = names.size() > max ? max : names.size();
  for (std::size_t i = 0; i < named; ++i) {
    const bool last = i + 1 == names.size();
    if (i > 0) text += last ? " and " : ", ";
    text += names[i];
  }
  if (named < names.size()) text += " and " + std::to_string(names.size() - named) + " others";
  return text;
}

}  // namespace fleetrun::launcher
