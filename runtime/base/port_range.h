// A range of TCP ports as text: what users write, and what the kernel does.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

namespace fleetrun {

/// Two ports, the lower one first, with that byte between them: "20000:29999". nullopt for anything else.
std::optional<std::pair<int, int>> parse_ports(std::string_view text, char between);

}  // namespace fleetrun
