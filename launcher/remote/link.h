// An agent at the other end of a command's pipes: frames both ways, until the command ends.
// One thread, that of the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/remote/agent_channel.h"
#include "launcher/remote/command.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher::remote {

/// Nothing of it is called from inside a function of Link; any of it may destroy the link.
class LinkListener {
 public:
  virtual ~LinkListener() = default;
  virtual void on_frame(Addressed frame) = 0;
  /// The host asks for fleetrun itself, whose bytes are to follow as they are.
  virtual void on_wish() {}
  /// Some of what waits has been taken.
  virtual void on_room() {}
  /// The last call. `said`: the end of what the command wrote on standard error, or of what came
  /// before any frame where that is nothing; `garbled`: why the bytes that came were not frames, which ended
  /// the command.
  virtual void on_closed(int exit_status, const std::string& said, const std::string& garbled) = 0;
};

class Link {
 public:
  virtual ~Link() = default;  // kills the command
  virtual void send(const Addressed& frame) = 0;
  virtual void send_bytes(std::string_view bytes) = 0;
  /// The other end is told that nothing follows: an agent stops everything and ends.
  virtual void close_input() = 0;
  virtual void kill() = 0;
  /// Whether bytes are taken in: not, while those to whom they go do not take them.
  virtual void set_reading(bool reading) = 0;
  /// Bytes that wait to be taken by the other end.
  virtual std::size_t waiting() const = 0;
};

/// What the bytes that a command writes stand for; it may keep some for the next call. Throws: Error(data).
using Unwrap = std::function<std::string(std::string_view bytes)>;

/// `listener` outlives the link. `unwrap`: the command writes frames in another form. Throws: Error(spawn) as
/// start_command() does.
std::unique_ptr<Link> start_link(boost::asio::io_context& loop, const CommandLine& command,
                                 LinkListener& listener, Unwrap unwrap = {});

}  // namespace fleetrun::launcher::remote
