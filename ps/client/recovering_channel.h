// A channel to a server that may be started again: when its connection is lost another one is made, and every
// request that was not answered is sent again. The server tells which it has done already
// (ps/durable/write_barrier.h, ps/sync/barrier_service.h).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "ps/base/server_channel.h"
#include "ps/client/in_flight.h"

namespace fleetrun::ps {

/// Connects to the server again, with the hello of the same incarnation. Calls the function it is given, from
/// any thread, once that connection is lost. Gives up soon when the flag is set. `answered`: the server has
/// answered every change up to this one; it must still know of them.
/// Throws: Error, when the server does not come back, or not as it was: then nothing more is tried.
using Reconnect = std::function<std::unique_ptr<Channel>(
    std::function<void()> on_lost, const std::atomic<bool>& give_up, std::uint64_t answered)>;

class RecoveringChannel final : public Channel {
 public:
  /// Connects for the first time. `name` is how errors call the server.
  RecoveringChannel(std::string name, Reconnect connect);
  /// Of a connection that is there: `first` is called with what it is to call when it is lost.
  using First = std::function<std::unique_ptr<Channel>(std::function<void()> on_lost)>;
  /// `answered`: the changes up to this one, to earlier connections of the client.
  RecoveringChannel(std::string name, const First& first, Reconnect connect,
                    const InFlight::Limits& limits = {}, std::uint64_t answered = 0);
  /// Gives up what is under way.
  ~RecoveringChannel() override;
  RecoveringChannel(const RecoveringChannel&) = delete;
  RecoveringChannel& operator=(const RecoveringChannel&) = delete;

  /// Waits for room (ps/client/in_flight.h). Throws: Error(timeout), or why the server did not come back.
  std::unique_ptr<Call> start(const wire::Header& header, Message request,
                              std::shared_ptr<Endings> endings) override;
  MessageSource messages() override;
  std::uint64_t connections() const override;
  const std::string& name() const noexcept override { return name_; }

 private:
  struct State;
  class RecoveringCall;
  std::string name_;
  InFlight in_flight_;
  std::shared_ptr<State> state_;  // shared with the calls under way
};

}  // namespace fleetrun::ps
