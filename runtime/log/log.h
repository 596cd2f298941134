// The log lines of training processes and servers, on standard error,
// one write a line, in the shape of Paddle's:
//
//   I0518 11:27:20.730531 177420 rpc_server.cc:73] running server with rank id: 0, endpoint: 127.0.0.1:40001
//
// level, month and day, local time, thread, source, text. The launcher's own lines are another contract
// (cli/launch_log). Threads: any. Never throws.
#pragma once

#include <string_view>

namespace fleetrun::log {

/// The line of the source that says something: std::source_location, which clang has from version 16 on.
struct Source {
  const char* file;
  int line;
  const char* function;

  static constexpr Source here(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                               const char* function = __builtin_FUNCTION()) noexcept {
    return {file, line, function};
  }
};

/// A milestone.
void info(std::string_view text, Source where = Source::here()) noexcept;
/// Something is not as asked, and work goes on.
void warning(std::string_view text, Source where = Source::here()) noexcept;

}  // namespace fleetrun::log
