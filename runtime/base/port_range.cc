#include "runtime/base/port_range.h"

#include <string>
#include <vector>

#include "runtime/base/text.h"

namespace fleetrun {

std::optional<std::pair<int, int>> parse_ports(std::string_view text, char between) {
  const std::vector<std::string> ends = split(text, between);
  const auto first = parse_integer(ends.size() == 2 ? ends[0] : "");
  const auto last = parse_integer(ends.size() == 2 ? ends[1] : "");
  if (!first || !last || *first < 1 || *last > 65535 || *first > *last) return std::nullopt;
  return std::pair(static_cast<int>(*first), static_cast<int>(*last));
}

}  // namespace fleetrun
