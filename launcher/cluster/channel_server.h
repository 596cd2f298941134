// Where other launchers reach this one: listens at one address, and lets in those who prove themselves.
//
// Strangers cannot keep others out. Until a connection has proven itself it is one of at most `unproven`;
// when there are more, the oldest that has said nothing goes, else the oldest. Launchers speak first and
// prove themselves within a round trip, so they are never among the oldest. With no descriptor left, one that
// is held back for this is used to turn whoever waits away, and accepting pauses for a moment.
//
// Strangers are counted, not answered, and told of once a second at most; so are launchers that are refused.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/cluster/sealed_channel.h"
#include "launcher/net/socket_address.h"

namespace fleetrun::launcher {

using ConnectionId = std::uint64_t;  // counted from 1

struct ChannelLimits {
  std::size_t unproven = 1024, proven = 65'536;
  std::chrono::milliseconds breath{100};  // before accepting again, where no descriptor is left
};

struct StrangerCount {
  std::uint64_t turned_away = 0;  // since the last time
  std::string last;               // of them, and why: "10.0.0.9:4711 is not fleetrun: it begins with 'GET /'"
};

/// "turned 3 strangers away, lastly: 10.0.0.9:4711 is not fleetrun: …"
std::string to_string(const StrangerCount& count);

/// The server may not be destroyed, nor stop to listen, from inside the last two.
class ChannelServerListener {
 public:
  virtual ~ChannelServerListener() = default;
  virtual void on_open(ConnectionId id, const std::string& peer) = 0;
  virtual void on_message(ConnectionId id, std::string_view message) = 0;
  /// Of a connection that was open; not of one that was closed from here.
  virtual void on_closed(ConnectionId id, const ChannelClosed& closed) = 0;
  /// A fleetrun that cannot be let in: another secret, another version.
  virtual void on_refused(const ChannelClosed& closed) = 0;
  virtual void on_strangers(const StrangerCount& count) = 0;
};

class ChannelServer {
 public:
  virtual ~ChannelServer() = default;
  virtual const std::vector<Endpoint>& endpoints() const noexcept = 0;  // in digits
  virtual void send(ConnectionId id, std::string_view message) = 0;
  /// The same without a copy, for what is long and goes to many.
  virtual void send(ConnectionId id, std::shared_ptr<const std::string> message) = 0;
  /// Sends what is left and says goodbye, in the background.
  virtual void close(ConnectionId id) = 0;
  virtual void close_all() = 0;
  /// Takes no more connections; those that there are go on.
  virtual void stop_listening() = 0;
};

/// The sockets listen (socket_address.h). `listener` outlives the server.
std::unique_ptr<ChannelServer> serve(boost::asio::io_context& loop, std::vector<UniqueFd> sockets,
                                     const ChannelSettings& settings, const ChannelLimits& limits,
                                     ChannelServerListener& listener);
std::unique_ptr<ChannelServer> serve(boost::asio::io_context& loop, UniqueFd socket,
                                     const ChannelSettings& settings, const ChannelLimits& limits,
                                     ChannelServerListener& listener);

}  // namespace fleetrun::launcher
