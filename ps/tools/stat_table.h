// The metrics of servers (ps/server/stat_json.h) as a table for people. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fleetrun::ps {

/// `now`: each server's JSON, by rank. With `before`, an earlier one, counts and times are those in between,
/// as rates. Throws: Error(data) for what is not such JSON.
std::string stat_table(const std::vector<std::string>& now, const std::vector<std::string>* before = nullptr);

}  // namespace fleetrun::ps
