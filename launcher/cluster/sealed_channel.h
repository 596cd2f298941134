// One authenticated connection between two launchers: whole messages in order,
// or the reason why there are no more.
//
//   dial    →  look up, connect  →  handshake  →  on_open  →  messages  →  on_closed
//   listen  →  accept            →  handshake  →  on_open  →  messages  →  on_closed
//
// After the handshake everything is in records (runtime/secure/record_layer), except with --insecure.
//
// Nothing of what the other side sends before it has proven itself is believed or kept, and it has five
// seconds for that. Messages that are sent within one turn of the loop travel together. Everything happens in
// the loop, without blocking; no function of a listener is called from inside a function of a channel.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/endpoint.h"
#include "runtime/base/unique_fd.h"
#include "runtime/secure/secret.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct ChannelSettings {
  std::optional<Secret> secret;  // nullopt: --insecure
  std::string secret_source;     // its file, for messages
  std::string purpose = "cluster";
  std::string version;  // of fleetrun
  std::chrono::milliseconds connect_timeout{5000}, handshake_timeout{5000};
  std::chrono::milliseconds unacknowledged{10'000};  // TCP_USER_TIMEOUT: bytes that nobody confirms break it
  std::size_t max_message_bytes = 64 << 20, max_unsent_bytes = 256 << 20;
};

enum class ChannelEnd {
  goodbye,      // the other side closed it, between two messages
  broken,       // it was cut: reset, timed out, closed within a message, changed on the way
  unreachable,  // there was no connection: nobody knows the name, nobody listens, no answer
  refused,      // the two can never agree: secrets, versions or settings differ
  stranger,     // what is at the other end is not fleetrun
};

struct ChannelClosed {
  ChannelEnd end = ChannelEnd::broken;
  std::string why, hint;
};

class ChannelListener {
 public:
  virtual ~ChannelListener() = default;
  /// The other side has proven itself.
  virtual void on_open() = 0;
  /// `message` is valid during the call. The channel may be destroyed in it.
  virtual void on_message(std::string_view message) = 0;
  /// Nothing comes afterwards.
  virtual void on_closed(const ChannelClosed& closed) = 0;
};

/// Destroyed, it is cut off at once; what was sent in this turn of the loop may be lost.
class Channel {
 public:
  virtual ~Channel() = default;
  /// Only of an open channel; of another, nothing happens.
  virtual void send(std::string_view message) = 0;
  /// The same without a copy, for what is long and goes to many.
  virtual void send(std::shared_ptr<const std::string> message) = 0;
  /// Sends what is left and says goodbye, in the background. The listener hears nothing more.
  virtual void close() = 0;
  /// Cuts it off so that the other side sees it break: no goodbye comes late, after a cut of the network.
  virtual void cut() = 0;
  /// Whether anything came from the other side.
  virtual bool has_spoken() const noexcept = 0;
  /// The other side's address, in digits; while there is no connection, what was dialled.
  virtual std::string peer() const = 0;
  /// This side's address; empty while there is no connection.
  virtual std::string own_address() const = 0;
};

/// `listener` outlives the channel.
std::unique_ptr<Channel> dial(boost::asio::io_context& loop, const Endpoint& endpoint,
                              const ChannelSettings& settings, ChannelListener& listener);

/// Over a socket that was accepted.
std::unique_ptr<Channel> serve_channel(boost::asio::io_context& loop, UniqueFd socket,
                                       const ChannelSettings& settings, ChannelListener& listener);

}  // namespace fleetrun::launcher
