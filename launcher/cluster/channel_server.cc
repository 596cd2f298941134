#include "launcher/cluster/channel_server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/secure/first_to_go.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Descriptor = asio::posix::stream_descriptor;

constexpr int kAcceptsPerTurn = 64;
constexpr std::chrono::seconds kNewsInterval{1};
constexpr std::size_t kMaxRefused = 16;   // told of at once
constexpr std::size_t kMaxLookedAt = 64;  // of the unproven, when one has to go

UniqueFd reserve_descriptor() {
  return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

bool is_out_of_descriptors(int problem) {
  return problem == EMFILE || problem == ENFILE || problem == ENOBUFS || problem == ENOMEM;
}

class Server;

/// One connection of the server.
class PeerConnection final : public ChannelListener {
 public:
  PeerConnection(Server& server, ConnectionId id) : server_(server), id_(id) {}

  void on_open() override;
  void on_message(std::string_view message) override;
  void on_closed(const ChannelClosed& closed) override;

  std::unique_ptr<Channel> channel;
  std::list<ConnectionId>::iterator place;  // among the unproven, while it is one
  bool proven = false;

 private:
  Server& server_;
  ConnectionId id_;
};

/// Kept alive by the handle that is given out; its handlers do nothing once that is gone.
class Server final : public std::enable_shared_from_this<Server> {
 public:
  Server(asio::io_context& loop, const ChannelSettings& settings, const ChannelLimits& limits,
         ChannelServerListener& listener)
      : loop_(loop),
        news_timer_(loop),
        reserve_(reserve_descriptor()),
        settings_(settings),
        limits_(limits),
        listener_(listener) {}

  void listen(UniqueFd socket) {
    endpoints_.push_back(to_endpoint(local_address(socket.value()).value()));
    acceptors_.push_back(std::make_unique<Acceptor>(loop_, std::move(socket)));
    accept_on(*acceptors_.back());
  }
  const std::vector<Endpoint>& endpoints() const noexcept { return endpoints_; }
  void send(ConnectionId id, std::string_view message) {
    const auto found = peer_connections_.find(id);
    if (found != peer_connections_.end()) found->second->channel->send(message);
  }
  void send(ConnectionId id, std::shared_ptr<const std::string> message) {
    const auto found = peer_connections_.find(id);
    if (found != peer_connections_.end()) found->second->channel->send(std::move(message));
  }
  void close(ConnectionId id) {
    const auto found = peer_connections_.find(id);
    if (found == peer_connections_.end()) return;
    found->second->channel->close();
    forget(id);
  }
  void close_all() {
    std::vector<ConnectionId> ids;
    for (const auto& [id, peer_connection] : peer_connections_) ids.push_back(id);
    for (const ConnectionId id : ids) close(id);
  }
  void stop_listening() { acceptors_.clear(); }

  void on_open(ConnectionId id) {
    PeerConnection& peer_connection = *peer_connections_.at(id);
    unproven_.erase(peer_connection.place);
    peer_connection.proven = true;
    if (peer_connections_.size() - unproven_.size() > limits_.proven) {
      count_stranger("more than " + std::to_string(limits_.proven) + " launchers are connected");
      return forget(id);
    }
    listener_.on_open(id, peer_connection.channel->peer());
  }
  void on_message(ConnectionId id, std::string_view message) { listener_.on_message(id, message); }
  void on_closed(ConnectionId id, const ChannelClosed& closed) {
    const bool was_open = peer_connections_.at(id)->proven;
    forget(id);
    if (was_open) return listener_.on_closed(id, closed);
    if (closed.end != ChannelEnd::refused) return count_stranger(closed.why);
    if (refused_.size() < kMaxRefused) refused_.push_back(closed);
    tell_news();
  }

 private:
  struct Acceptor {
    Acceptor(asio::io_context& loop, UniqueFd socket) : descriptor(loop, socket.value()), breath(loop) {
      socket.release();
    }
    Descriptor descriptor;
    asio::steady_timer breath;
  };

  /// For a handler: nothing is done once the server, or its acceptor, is gone.
  template <class Then>
  auto unless_gone(Acceptor& acceptor, Then then) {
    return [self = weak_from_this(), &acceptor, then](const error_code& error) {
      const auto server = self.lock();
      if (!error && server && !server->acceptors_.empty()) then(*server, acceptor);
    };
  }

  void accept_on(Acceptor& acceptor) {
    acceptor.descriptor.async_wait(
        Descriptor::wait_read,
        unless_gone(acceptor, [](Server& server, Acceptor& ready) { server.accept_some(ready); }));
  }

  void accept_some(Acceptor& acceptor) {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      UniqueFd socket(
          ::accept4(acceptor.descriptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket) {
        welcome(std::move(socket));
        continue;
      }
      if (errno == EAGAIN) break;
      if (is_out_of_descriptors(errno)) return turn_one_away(acceptor);
    }
    accept_on(acceptor);
  }

  void welcome(UniqueFd socket) {
    if (unproven_.size() >= limits_.unproven) push_out_one();
    const ConnectionId id = ++last_id_;
    auto peer_connection = std::make_unique<PeerConnection>(*this, id);
    PeerConnection& added = *peer_connection;
    added.place = unproven_.insert(unproven_.end(), id);
    peer_connections_.emplace(id, std::move(peer_connection));
    try {
      added.channel = serve_channel(loop_, std::move(socket), settings_, added);
    } catch (const Error& error) {
      count_stranger(error.what());
      forget(id);
    }
  }

  void push_out_one() {
    const auto has_spoken = [this](ConnectionId id) {
      return peer_connections_.at(id)->channel->has_spoken();
    };
    const ConnectionId oldest = *first_to_go(unproven_.begin(), unproven_.end(), has_spoken, kMaxLookedAt);
    count_stranger(peer_connections_.at(oldest)->channel->peer() +
                   " did not say who it is, and others were waiting");
    forget(oldest);
  }

  /// Closes a connection that waits to be accepted, which would otherwise wake us for ever.
  void turn_one_away(Acceptor& acceptor) {
    if (!unproven_.empty()) push_out_one();
    reserve_.reset();
    UniqueFd(::accept4(acceptor.descriptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK))
        .reset();
    reserve_ = reserve_descriptor();
    count_stranger("no descriptor is left for more connections");
    acceptor.breath.expires_after(limits_.breath);
    acceptor.breath.async_wait(
        unless_gone(acceptor, [](Server& server, Acceptor& rested) { server.accept_some(rested); }));
  }

  void count_stranger(const std::string& why) {
    ++strangers_.turned_away;
    strangers_.last = why;
    tell_news();
  }

  void tell_news() {
    if (quiet_ || (strangers_.turned_away == 0 && refused_.empty())) return;
    quiet_ = true;
    news_timer_.expires_after(kNewsInterval);
    news_timer_.async_wait([self = weak_from_this()](const error_code& error) {
      const auto server = self.lock();
      if (error || !server) return;
      server->quiet_ = false;
      server->tell_news();
    });
    const auto strangers = std::exchange(strangers_, {});
    for (const ChannelClosed& closed : std::exchange(refused_, {})) listener_.on_refused(closed);
    if (strangers.turned_away > 0) listener_.on_strangers(strangers);
  }

  void forget(ConnectionId id) {
    const auto found = peer_connections_.find(id);
    if (!found->second->proven) unproven_.erase(found->second->place);
    peer_connections_.erase(found);
  }

  asio::io_context& loop_;
  std::vector<Endpoint> endpoints_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;  // all, or none any more
  asio::steady_timer news_timer_;
  UniqueFd reserve_;
  ChannelSettings settings_;
  ChannelLimits limits_;
  ChannelServerListener& listener_;
  StrangerCount strangers_;             // not told yet,
  std::vector<ChannelClosed> refused_;  // nor are these,
  bool quiet_ = false;                  // since others just were
  std::unordered_map<ConnectionId, std::unique_ptr<PeerConnection>> peer_connections_;
  std::list<ConnectionId> unproven_;  // oldest first
  ConnectionId last_id_ = 0;
};

void PeerConnection::on_open() {
  server_.on_open(id_);
}
void PeerConnection::on_message(std::string_view message) {
  server_.on_message(id_, message);
}
void PeerConnection::on_closed(const ChannelClosed& closed) {
  server_.on_closed(id_, closed);
}

class ServerHandle final : public ChannelServer {
 public:
  explicit ServerHandle(std::shared_ptr<Server> server) : server_(std::move(server)) {}
  ~ServerHandle() override { server_->stop_listening(); }
  ServerHandle(const ServerHandle&) = delete;
  ServerHandle& operator=(const ServerHandle&) = delete;

  const std::vector<Endpoint>& endpoints() const noexcept override { return server_->endpoints(); }
  void send(ConnectionId id, std::string_view message) override { server_->send(id, message); }
  void send(ConnectionId id, std::shared_ptr<const std::string> message) override {
    server_->send(id, std::move(message));
  }
  void close(ConnectionId id) override { server_->close(id); }
  void close_all() override { server_->close_all(); }
  void stop_listening() override { server_->stop_listening(); }

 private:
  std::shared_ptr<Server> server_;
};

}  // namespace

std::string to_string(const StrangerCount& count) {
  const std::string number = std::to_string(count.turned_away);
  return "turned " + (count.turned_away == 1 ? "a stranger" : number + " strangers") + " away" +
         (count.turned_away == 1 ? ": " : ", lastly: ") + count.last;
}

std::unique_ptr<ChannelServer> serve(asio::io_context& loop, std::vector<UniqueFd> sockets,
                                     const ChannelSettings& settings, const ChannelLimits& limits,
                                     ChannelServerListener& listener) {
  auto server = std::make_shared<Server>(loop, settings, limits, listener);
  for (UniqueFd& socket : sockets) server->listen(std::move(socket));
  return std::make_unique<ServerHandle>(server);
}

std::unique_ptr<ChannelServer> serve(asio::io_context& loop, UniqueFd socket, const ChannelSettings& settings,
                                     const ChannelLimits& limits, ChannelServerListener& listener) {
  std::vector<UniqueFd> sockets;
  sockets.push_back(std::move(socket));
  return serve(loop, std::move(sockets), settings, limits, listener);
}

}  // namespace fleetrun::launcher
