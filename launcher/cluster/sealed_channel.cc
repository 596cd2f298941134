#include "launcher/cluster/sealed_channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <utility>

#include "launcher/cluster/connector.h"
#include "launcher/cluster/outbox.h"
#include "launcher/net/socket_address.h"
#include "runtime/base/error.h"
#include "runtime/base/frames.h"
#include "runtime/secure/handshake.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Descriptor = asio::posix::stream_descriptor;

constexpr std::size_t kPiece = 65'536;                // read at once
constexpr int kPiecesPerTurn = 16;                    // then the others have their turn
constexpr std::chrono::milliseconds kFarewell{2000};  // for what is left, after close()

void set_options(int socket, const ChannelSettings& settings) {
  const int on = 1, unacknowledged = static_cast<int>(settings.unacknowledged.count());
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged, sizeof unacknowledged);
}

std::string text_of(const std::optional<SocketAddress>& address) {
  return address ? to_string(to_endpoint(*address)) : "";
}

/// Owned by the handlers of its operations, and by the Channel that is handed out.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& loop, const ChannelSettings& settings, ChannelListener& listener)
      : loop_(loop), descriptor_(loop), deadline_(loop), settings_(settings), listener_(&listener) {}

  void dial(const Endpoint& endpoint) {
    peer_ = to_string(endpoint);
    connector_ = connect_to(loop_, endpoint, settings_.connect_timeout,
                            [self = weak_from_this()](UniqueFd socket, const ConnectFailure& failure) {
                              if (const auto connection = self.lock())
                                connection->on_connected(std::move(socket), failure.why);
                            });
  }

  void start(UniqueFd socket, Side side) {
    set_options(socket.value(), settings_);
    own_address_ = text_of(local_address(socket.value()));
    if (side == Side::server) peer_ = text_of(peer_address(socket.value()));
    descriptor_.assign(socket.value());
    socket.release();
    handshake_.emplace(HandshakeSettings{.side = side,
                                         .secret = settings_.secret,
                                         .secret_source = settings_.secret_source,
                                         .purpose = settings_.purpose,
                                         .version = settings_.version,
                                         .peer = peer_,
                                         .protocol = kProtocol});
    deadline_.expires_after(settings_.handshake_timeout);
    deadline_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && self->handshake_) self->on_slow_handshake();
    });
    write(handshake_->output());
    if (side == Side::client) return wait_for_bytes();
    // What is there already is read soon, before others are accepted:
    // who has said nothing is the first to go.
    asio::post(loop_, [self = shared_from_this()] {
      if (self->descriptor_.is_open() && !self->reading_) self->read_some();
    });
  }

  void send(std::string_view message) {
    if (!frames_ || !listener_) return;
    std::string frame;
    append_frame(message, frame);
    write_later(frame);
  }

  void send(std::shared_ptr<const std::string> message) {
    if (records_) return send(std::string_view(*message));
    if (!frames_ || !listener_) return;
    outbox_.add(frame_head(message->size()));
    outbox_.add(std::move(message));
    write_later({});
  }

  void close() {
    listener_ = nullptr;
    connector_.reset();
    if (!descriptor_.is_open()) return;
    if (!frames_) return cut();
    closing_ = true;
    deadline_.expires_after(kFarewell);
    deadline_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->cut();
    });
    if (!writing_) flush();
  }

  void cut() {
    listener_ = nullptr;
    connector_.reset();
    deadline_.cancel();
    error_code ignored;
    if (descriptor_.is_open()) descriptor_.close(ignored);
  }

  /// The kernel sends a reset, and nothing that still waits.
  void reset() {
    constexpr linger kNow = {1, 0};
    if (descriptor_.is_open())
      ::setsockopt(descriptor_.native_handle(), SOL_SOCKET, SO_LINGER, &kNow, sizeof kNow);
    cut();
  }

  /// Of a Channel that goes; after close() the farewell goes on without it. Only close() says goodbye.
  void abandon() {
    if (!closing_) reset();
  }

  bool has_spoken() const noexcept { return has_spoken_; }
  const std::string& peer() const noexcept { return peer_; }
  const std::string& own_address() const noexcept { return own_address_; }

 private:
  void on_connected(UniqueFd socket, const std::string& failure) {
    connector_.reset();
    if (!listener_) return;
    if (!socket) return end({ChannelEnd::unreachable, peer_ + ": " + failure, ""});
    start(std::move(socket), Side::client);
  }

  void on_slow_handshake() {
    end({ChannelEnd::unreachable, peer_ + " accepted the connection, and did not answer as a fleetrun does",
         ""});
  }

  /// The listener is told in another turn: this is called from inside a function of the channel.
  void end_later(ChannelClosed closed) {
    asio::post(loop_, [self = shared_from_this(), closed = std::move(closed)] { self->end(closed); });
  }

  void end(const ChannelClosed& closed) {
    ChannelListener* listener = std::exchange(listener_, nullptr);
    if (!listener) return;
    if (closed.end == ChannelEnd::refused && descriptor_.is_open()) {
      // The other side still has to read why: no reset may overtake it.
      ::shutdown(descriptor_.native_handle(), SHUT_WR);
      closing_ = true;
      deadline_.expires_after(kFarewell);
      deadline_.async_wait([self = shared_from_this()](const error_code& error) {
        if (!error) self->cut();
      });
      wait_for_bytes();
    } else if (closed.end == ChannelEnd::broken) {
      reset();
    } else {
      cut();
    }
    listener->on_closed(closed);
  }

  void wait_for_bytes() {
    if (!descriptor_.is_open() || std::exchange(reading_, true)) return;
    descriptor_.async_wait(Descriptor::wait_read, [self = shared_from_this()](const error_code& error) {
      self->reading_ = false;
      if (!error && self->descriptor_.is_open()) self->read_some();
    });
  }

  void read_some() {
    char piece[kPiece];
    for (int i = 0; i < kPiecesPerTurn; ++i) {
      const ssize_t count = ::recv(descriptor_.native_handle(), piece, sizeof piece, MSG_DONTWAIT);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) break;
      if (count <= 0) return on_no_more_bytes(count < 0 ? errno : 0);
      has_spoken_ = true;
      if (closing_) continue;  // nobody listens any more
      take({piece, static_cast<std::size_t>(count)});
      if (!descriptor_.is_open() || (!listener_ && !closing_)) return;
      if (static_cast<std::size_t>(count) < sizeof piece) break;
    }
    wait_for_bytes();
  }

  void on_no_more_bytes(int problem) {
    if (closing_) return cut();
    if (problem == 0) problem = write_problem_;
    const bool whole =
        problem == 0 && frames_ && !frames_->is_within_frame() && !(records_ && records_->is_within_record());
    if (handshake_ && !handshake_->is_stranger())
      return end({ChannelEnd::unreachable, peer_ + " broke off while the two proved who they are", ""});
    if (handshake_)
      return end({ChannelEnd::unreachable, peer_ + " closed the connection without a word", ""});
    if (whole) return end({ChannelEnd::goodbye, peer_ + " closed the connection", ""});
    end({ChannelEnd::broken,
         "the connection to " + peer_ +
             " broke: " + (problem ? ::strerror(problem) : "it ended within a message"),
         ""});
  }

  /// Bytes of the network, which are records from some point on.
  void take(std::string_view bytes) {
    const auto self = shared_from_this();  // whoever is told may let go of us
    try {
      if (handshake_ && !take_handshake(bytes)) return;
      if (!records_) return take_frames(bytes);
      char plain[kPiece];
      while (const std::size_t opened = records_->open(bytes, std::as_writable_bytes(std::span(plain)))) {
        take_frames({plain, opened});
        if (!listener_) return;
      }
    } catch (const Error& error) {
      end({ChannelEnd::broken, peer_ + ": " + error.what(), error.hint()});
    }
  }

  void take_frames(std::string_view bytes) {
    frames_->receive(bytes);
    while (listener_) {
      const auto message = frames_->next();
      if (!message) break;
      listener_->on_message(*message);
    }
  }

  /// True when it is finished; `bytes` are then those that follow it.
  bool take_handshake(std::string_view& bytes) {
    try {
      while (!bytes.empty() && !handshake_->finished()) bytes.remove_prefix(handshake_->receive(bytes));
    } catch (const Error& error) {
      write(handshake_->output());
      const bool stranger = handshake_->is_stranger();
      end({stranger ? ChannelEnd::stranger
                    : (error.kind() == ErrorKind::config ? ChannelEnd::refused : ChannelEnd::broken),
           error.what(), error.hint()});
      return false;
    }
    write(handshake_->output());
    if (!listener_ || !handshake_->finished()) return false;
    records_ = handshake_->take_records();
    frames_.emplace(settings_.max_message_bytes);
    handshake_.reset();
    deadline_.cancel();
    listener_->on_open();
    return listener_ != nullptr;
  }

  /// With what else is sent in this turn of the loop.
  void write_later(std::string_view bytes) {
    if (records_) {
      std::string sealed;
      records_->seal(std::as_bytes(std::span(bytes)), sealed);
      outbox_.add(std::make_shared<const std::string>(std::move(sealed)));
    } else {
      outbox_.add(bytes);
    }
    if (outbox_.size() > settings_.max_unsent_bytes)
      return end_later({ChannelEnd::broken,
                        peer_ + " does not accept messages: " + std::to_string(outbox_.size()) +
                            " bytes are waiting for it",
                        ""});
    if (std::exchange(flush_posted_, true)) return;
    asio::post(loop_, [self = shared_from_this()] { self->flush(); });
  }

  void write(std::string_view bytes) {
    outbox_.add(bytes);
    if (!outbox_.empty() && !writing_) flush();
  }

  void flush() {
    flush_posted_ = false;
    if (writing_ || !descriptor_.is_open()) return;
    while (!outbox_.empty()) {
      if (outbox_.write_some(descriptor_.native_handle())) continue;
      if (errno == EAGAIN) return write_when_possible();
      // What the other side said before it broke off comes first: reading finds the end as well. The kernel
      // tells the reason once, and reading would take the end for a goodbye. EPIPE: it was one.
      if (write_problem_ == 0 && errno != EPIPE) write_problem_ = errno;
      outbox_.clear();
      if (closing_) cut();
      return;
    }
    if (!closing_) return;
    ::shutdown(descriptor_.native_handle(), SHUT_WR);
    wait_for_bytes();  // until the other side has closed, too
  }

  void write_when_possible() {
    writing_ = true;
    descriptor_.async_wait(Descriptor::wait_write, [self = shared_from_this()](const error_code& error) {
      self->writing_ = false;
      if (!error) self->flush();
    });
  }

  asio::io_context& loop_;
  Descriptor descriptor_;
  asio::steady_timer deadline_;
  ChannelSettings settings_;
  ChannelListener* listener_;  // nullptr: it is told nothing any more
  std::unique_ptr<Connector> connector_;
  std::string peer_, own_address_;
  std::optional<Handshake> handshake_;  // until it is finished
  std::optional<RecordLayer> records_;  // afterwards, where it is sealed
  std::optional<FrameReader> frames_;   // afterwards
  Outbox outbox_;
  int write_problem_ = 0;  // of the first write that failed, unless it was after a goodbye
  bool flush_posted_ = false, writing_ = false, reading_ = false, closing_ = false, has_spoken_ = false;
};

class Handle final : public Channel {
 public:
  explicit Handle(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  ~Handle() override { connection_->abandon(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void send(std::string_view message) override { connection_->send(message); }
  void send(std::shared_ptr<const std::string> message) override { connection_->send(std::move(message)); }
  void close() override { connection_->close(); }
  void cut() override { connection_->reset(); }
  bool has_spoken() const noexcept override { return connection_->has_spoken(); }
  std::string peer() const override { return connection_->peer(); }
  std::string own_address() const override { return connection_->own_address(); }

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace

std::unique_ptr<Channel> dial(asio::io_context& loop, const Endpoint& endpoint,
                              const ChannelSettings& settings, ChannelListener& listener) {
  auto connection = std::make_shared<Connection>(loop, settings, listener);
  connection->dial(endpoint);
  return std::make_unique<Handle>(connection);
}

std::unique_ptr<Channel> serve_channel(asio::io_context& loop, UniqueFd socket,
                                       const ChannelSettings& settings, ChannelListener& listener) {
  auto connection = std::make_shared<Connection>(loop, settings, listener);
  connection->start(std::move(socket), Side::server);
  return std::make_unique<Handle>(connection);
}

}  // namespace fleetrun::launcher
