// What the processes of all hosts show, on one terminal, pipe or file: whole lines with their host before
// them, or one process's bytes as they are; on a terminal as TerminalText. Nobody waits for a reader that is
// slow: what it does not take is held up to a limit, and then the hosts are asked to hold theirs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher::remote {

class HostOutput {
 public:
  virtual ~HostOutput() = default;
  virtual void take(std::uint32_t host, std::string_view bytes) = 0;
  /// The rest of a line without an end; nothing more comes of this host.
  virtual void end(std::uint32_t host) = 0;
  /// The job is over: from here on a reader that takes nothing for ten seconds counts as gone.
  virtual void hurry() = 0;
  /// Calls `done` when everything has been taken, or the reader is gone
  /// or has taken nothing for ten seconds. Hurries.
  virtual void drain(std::function<void()> done) = 0;
};

struct HostOutputSettings {
  int output = 1;                  // borrowed while it is made
  bool raw = false;                // bytes as they are
  std::vector<std::string> names;  // of the hosts, by number
  std::function<void(bool)> hold;  // true: hosts should send nothing for now
};

std::unique_ptr<HostOutput> show_hosts(boost::asio::io_context& loop, HostOutputSettings settings);

}  // namespace fleetrun::launcher::remote
