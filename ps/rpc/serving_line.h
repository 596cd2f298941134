// The line with which a server says that it serves, in the form that log readers of this field know:
//
//   I0518 11:27:20.730531 177420 rpc_server.cc:85] running server with rank id: 0, endpoint: 127.0.0.1:40001
#pragma once

#include <chrono>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

namespace fleetrun::ps {

/// Month, day and time of `now` in local time, thread id, and the base name of `where`. No final newline.
std::string serving_line(std::chrono::system_clock::time_point now, int thread, std::uint32_t rank,
                         std::string_view endpoint,
                         const std::source_location& where = std::source_location::current());

}  // namespace fleetrun::ps
