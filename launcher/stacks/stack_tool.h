// Runs something in a process of its own and hands over what it printed: a program, or a function that may
// block. The process is out of the terminal's way (a session of its own), ends with fleetrun, and is killed
// with all that it started in its session when its time is up.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct ToolLimits {
  std::chrono::milliseconds deadline{5'000};
  std::size_t max_bytes = 1 << 20;
};

class ToolRun {
 public:
  virtual ~ToolRun() = default;  // kills it
};

/// What it printed on standard output and error until its end, its deadline, or the limit of bytes.
using ToolDone = std::function<void(std::string output, bool in_time)>;

/// `argv[0]` is a path. `environment` is all that the program gets, as NAME=VALUE. `on_done` is called once,
/// from the loop; it may destroy the ToolRun.
/// Throws: Error(host) when no process can be made.
std::unique_ptr<ToolRun> run_tool(boost::asio::io_context& loop, const std::vector<std::string>& argv,
                                  const std::vector<std::string>& environment, const ToolLimits& limits,
                                  ToolDone on_done);

/// The same for `work`, which gets the descriptor to write to. It must not touch the loop.
std::unique_ptr<ToolRun> run_apart(boost::asio::io_context& loop, const std::function<void(int)>& work,
                                   const ToolLimits& limits, ToolDone on_done);

}  // namespace fleetrun::launcher
