// Starts agents on many hosts and keeps them: so many logins at a time, another try where a server is busy, a
// verdict for every host. Nothing runs on a host until an agent there gets its order,
// so a login may be tried again safely.
//
//   waiting → connecting → (hello) [shipping →] joined → (lost | ended)
//                 ↓  busy: waiting again, after a while
//              refused
//
// Beyond so many hosts it is a tree: some agents start those of a slice of the others, and pass on what is
// said. A host that cannot be reached so (keys are often on one host only) is logged in from here.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/remote/agent_channel.h"
#include "launcher/remote/ssh_command.h"
#include "launcher/ship/read_tree.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher::remote {

struct FanOutSettings {
  std::vector<std::string> ssh = {"ssh"};
  std::vector<std::string> srun;  // one command for all hosts instead (launcher/remote/srun_fan_out)
  std::string program;            // fleetrun on the hosts
  std::shared_ptr<const ship::Cargo> cargo;  // what the hosts are sent first, fleetrun too; nullptr: nothing
  std::string own_program;                   // and here
  std::string words = "agent --stdin";       // what it is told to do; constant, since a shell reads it
  std::vector<std::string> environment;      // of the commands
  int window = 8;
  int tries = 12;                                   // of a login, while the server is busy
  int tries_in_doubt = 5;                           // while all that is known is that it hangs up
  std::chrono::seconds connect_timeout{10};         // told to ssh
  std::chrono::milliseconds hello_timeout{30'000};  // from the start of a command to the agent's first word
  std::chrono::milliseconds ship_timeout{60'000};   // of nothing that moves, while files travel
  std::chrono::milliseconds first_pause{250},
      longest_pause{8'000};     // before another try; doubling, and up to half of it random
  std::size_t tree_above = 64;  // hosts
  std::size_t slice = 32;       // hosts that one agent starts
  std::uint64_t seed = 1;
};

/// A host to start an agent on.
struct Destination {
  std::uint32_t number = 0;  // among the job's hosts
  RemoteHost host;
  bool here = false;  // this machine: without ssh
};

/// Called from the loop; never from inside a function of FanOut. None of it may destroy the FanOut.
class FanOutListener {
 public:
  virtual ~FanOutListener() = default;
  virtual void on_joined(std::uint32_t host, const Hello& hello) = 0;
  /// No agent will be there. `tries`: logins that were made.
  virtual void on_refused(std::uint32_t host, const LoginFailure& failure, int tries) = 0;
  virtual void on_message(std::uint32_t host, Message message) = 0;
  /// The server was busy or hung up, and is tried again after a while.
  virtual void on_again(std::uint32_t /*host*/, const LoginFailure& /*failure*/, int /*tries*/) {}
  /// Its agent is gone, after it had joined: expected where it was let go.
  virtual void on_gone(std::uint32_t host, const std::string& why) = 0;
  /// Files travel to a host that has not joined yet.
  virtual void on_progress(std::uint32_t /*host*/, const Progress& /*progress*/) {}
};

class FanOut {
 public:
  virtual ~FanOut() = default;  // kills every command
  virtual void start(std::vector<Destination> destinations) = 0;
  virtual void send(std::uint32_t host, Message message) = 0;
  /// End of the channels: the agents stop everything there and end.
  virtual void close() = 0;
  virtual void kill() = 0;
  virtual void set_reading(bool reading) = 0;
  /// Agents that have not ended, and logins that are under way.
  virtual std::size_t alive() const = 0;
  /// The host through whose agent this one is reached; nullopt: directly.
  virtual std::optional<std::uint32_t> via(std::uint32_t /*host*/) const { return std::nullopt; }
};

/// `listener` outlives it.
std::unique_ptr<FanOut> make_fan_out(boost::asio::io_context& loop, FanOutSettings settings,
                                     FanOutListener& listener);

/// Which of `hosts` destinations start others: for each that does, the range of those. Pure.
struct Slice {
  std::size_t relay = 0, begin = 0, end = 0;
  bool operator==(const Slice&) const = default;
};
std::vector<Slice> plan_tree(std::size_t hosts, std::size_t above, std::size_t slice);

/// How long to wait before try number `tries` + 1: pure.
std::chrono::milliseconds login_pause(const FanOutSettings& settings, int tries,
                                      std::uint64_t random) noexcept;

}  // namespace fleetrun::launcher::remote
