#include "launcher/cluster/connector.h"

#include <errno.h>
#include <string.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <list>
#include <utility>
#include <vector>

#include "launcher/net/name_lookup.h"
#include "launcher/net/socket_address.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kHeadStart{250};  // of an address before the next is tried, too

std::string seconds(std::chrono::milliseconds time) {
  const auto tenths = time.count() / 100;
  return std::to_string(tenths / 10) + (tenths % 10 ? "." + std::to_string(tenths % 10) : "") + " s";
}

/// IPv6 and IPv4 in turn, each in the order that the resolver gave them.
std::vector<SocketAddress> in_turn(const std::vector<SocketAddress>& addresses) {
  std::vector<SocketAddress> first, second, result;
  for (const SocketAddress& address : addresses)
    (address.family() == addresses.front().family() ? first : second).push_back(address);
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) result.push_back(first[i]);
    if (i < second.size()) result.push_back(second[i]);
  }
  return result;
}

class Attempts final : public std::enable_shared_from_this<Attempts> {
 public:
  Attempts(asio::io_context& loop, Connected connected)
      : loop_(loop), deadline_(loop), head_start_(loop), connected_(std::move(connected)) {}

  void start(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
    deadline_.expires_after(timeout);
    deadline_.async_wait([self = shared_from_this(), timeout](const error_code& error) {
      if (!error)
        self->fail(self->failure_.why.empty() ? ConnectFailure{"no answer within " + seconds(timeout)}
                                              : self->failure_);
    });
    lookup_ = look_up(loop_, endpoint, [self = weak_from_this()](FoundAddresses found) {
      if (const auto attempts = self.lock()) attempts->on_found(std::move(found));
    });
  }

  void cancel() {
    connected_ = nullptr;
    clean_up();
  }

 private:
  using Sockets = std::list<asio::posix::stream_descriptor>;

  void on_found(FoundAddresses found) {
    if (found.addresses.empty()) return fail({found.failure});
    waiting_ = in_turn(found.addresses);
    try_next();
  }

  void try_next() {
    head_start_.cancel();
    if (!connected_) return;
    while (next_ < waiting_.size()) {
      UniqueFd fd = connecting_socket(waiting_[next_++]);
      if (!fd) {
        failure_ = failure_of(errno);
        continue;
      }
      sockets_.emplace_back(loop_, fd.value());
      fd.release();
      const auto socket = std::prev(sockets_.end());
      socket->async_wait(asio::posix::stream_descriptor::wait_write,
                         [self = shared_from_this(), socket](const error_code& error) {
                           if (!error && self->connected_) self->on_answer(socket);
                         });
      break;
    }
    if (sockets_.empty()) return fail(failure_);
    if (next_ == waiting_.size()) return;
    head_start_.expires_after(kHeadStart);
    head_start_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->try_next();
    });
  }

  void on_answer(Sockets::iterator socket) {
    int problem = 0;
    socklen_t size = sizeof problem;
    ::getsockopt(socket->native_handle(), SOL_SOCKET, SO_ERROR, &problem, &size);
    const int fd = socket->native_handle();
    if (problem == 0 && is_connected_to_itself(fd)) problem = ECONNREFUSED;
    if (problem == 0) {
      UniqueFd winner(socket->release());
      return finish(std::move(winner), {});
    }
    failure_ = failure_of(problem);
    sockets_.erase(socket);
    try_next();
  }

  /// To a port of this host where nobody listens, the kernel may connect a socket with itself.
  static bool is_connected_to_itself(int socket) {
    const auto here = local_address(socket), there = peer_address(socket);
    return here && there && to_endpoint(*here) == to_endpoint(*there);
  }

  static ConnectFailure failure_of(int error) { return {::strerror(error), error}; }

  void fail(const ConnectFailure& failure) { finish({}, failure); }

  void finish(UniqueFd socket, const ConnectFailure& failure) {
    const auto connected = std::exchange(connected_, nullptr);
    const auto self = shared_from_this();  // whoever is told may let go of us
    clean_up();
    if (connected) connected(std::move(socket), failure);
  }

  void clean_up() {
    deadline_.cancel();
    head_start_.cancel();
    lookup_.reset();
    sockets_.clear();
  }

  asio::io_context& loop_;
  asio::steady_timer deadline_, head_start_;
  Connected connected_;  // empty: told, or not wanted any more
  std::unique_ptr<NameLookup> lookup_;
  std::vector<SocketAddress> waiting_;
  std::size_t next_ = 0;
  Sockets sockets_;
  ConnectFailure failure_;
};

class AttemptsHandle final : public Connector {
 public:
  explicit AttemptsHandle(std::shared_ptr<Attempts> attempts) : attempts_(std::move(attempts)) {}
  ~AttemptsHandle() override { attempts_->cancel(); }
  AttemptsHandle(const AttemptsHandle&) = delete;
  AttemptsHandle& operator=(const AttemptsHandle&) = delete;

 private:
  std::shared_ptr<Attempts> attempts_;
};

}  // namespace

std::unique_ptr<Connector> connect_to(asio::io_context& loop, const Endpoint& endpoint,
                                      std::chrono::milliseconds timeout, Connected connected) {
  auto attempts = std::make_shared<Attempts>(loop, std::move(connected));
  attempts->start(endpoint, timeout);
  return std::make_unique<AttemptsHandle>(attempts);
}

}  // namespace fleetrun::launcher
