// Connections through the channel to a host: who connects to the entrance there comes out at the
// coordinator on the head, which so needs no port that others reach. What the two say to each other is
// sealed as on any network.
//
//   agent → controller: dial, bytes, hangup      controller → agent: bytes, hangup
//
// One thread, that of the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "launcher/remote/agent_channel.h"
#include "runtime/base/endpoint.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher::remote {

using SendMessage = std::function<void(Message)>;

/// The streams of one channel, on either side of it.
class Tunnel {
 public:
  Tunnel(boost::asio::io_context& loop, SendMessage send);
  ~Tunnel();  // ends all of them
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

  /// Listens on the loopback; each connection is a new stream. Throws: Error(host).
  Endpoint open_entrance();
  /// A stream that was dialed on the other side: to `target`.
  void on(const Dial& dial, const Endpoint& target);
  void on(const Bytes& bytes);
  void on(const Hangup& hangup);

 private:
  class Side;
  std::unique_ptr<Side> side_;
};

}  // namespace fleetrun::launcher::remote
