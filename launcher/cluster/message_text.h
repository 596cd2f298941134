// Phrases of the messages of the coordinator and the nodes of a job. Pure.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

/// "1 host", "4 hosts".
std::string counted(std::size_t count, std::string_view noun);

/// "0.3 s", "2.5 s", "41 s", "12 min": as exact as people want it.
std::string shown(std::chrono::milliseconds time);

/// "h1, h2 and h3"; beyond `max`: "h1, h2, h3 and 97 others".
std::string listed(const std::vector<std::string>& names, std::size_t max = 8);

}  // namespace fleetrun::launcher
