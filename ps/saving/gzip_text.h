// Text files, gzip or plain: the lines of Paddle's checkpoints.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fleetrun::ps {

/// Calls `take` with each line, without its end, and its number from 1. Throws: Error(data) naming the file
/// when it is damaged or has a line of more than 16 MiB; Error(host) when it cannot be read.
void read_lines(const std::string& path,
                const std::function<void(std::string_view line, std::size_t number)>& take);

/// Writes the text as a gzip file. Throws: Error(host) naming the file.
void write_gzip(const std::string& path, std::string_view text);

}  // namespace fleetrun::ps
