// The log lines of training processes and servers, on standard error,
// one write a line, in the shape of Paddle's:
//
//   I0518 11:27:20.730531 177420 rpc_server.cc:73] running server with rank id: 0, endpoint: 127.0.0.1:40001
//
// level, month and day, local time, thread, source, text. The launcher's own lines are another contract
// (cli/launch_log). Threads: any. Never throws.
#pragma once

#include <source_location>
#include <string_view>

namespace fleetrun::log {

/// A milestone.
void info(std::string_view text, std::source_location where = std::source_location::current()) noexcept;
/// Something is not as asked, and work goes on.
void warning(std::string_view text, std::source_location where = std::source_location::current()) noexcept;

}  // namespace fleetrun::log
