// A peer that is gone without a word is noticed by the kernel:
// unanswered data and probes end a connection after 5 s.
#include "launcher/etcd/http_exchange.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "launcher/etcd/http_answer.h"
#include "launcher/net/name_lookup.h"
#include "launcher/net/socket_address.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kMaxBody = 8 * 1024 * 1024;
constexpr int kQuietSeconds = 2, kProbeSeconds = 1, kProbes = 3;

std::string request_text(const HttpRequest& request) {
  std::string text = "POST " + request.path + " HTTP/1.1\r\nHost: " + to_string(request.to);
  text.append("\r\nContent-Type: application/json\r\nConnection: close\r\n");
  if (!request.authorization.empty())
    text.append("Authorization: ").append(request.authorization).append("\r\n");
  text.append("Content-Length: ").append(std::to_string(request.body.size())).append("\r\n\r\n");
  return text.append(request.body);
}

void watch_peer(int socket) noexcept {
  const int on = 1, all = 1000 * (kQuietSeconds + kProbes * kProbeSeconds);
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kQuietSeconds, sizeof kQuietSeconds);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kProbeSeconds, sizeof kProbeSeconds);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &all, sizeof all);
}

/// Owned by its handle and by the handlers of its operations.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& loop, const HttpRequest& request, HttpKind kind, HttpListener listener)
      : loop_(loop),
        socket_(loop),
        deadline_(loop),
        to_(request.to),
        text_(request_text(request)),
        kind_(kind),
        answer_(kind == HttpKind::whole ? kMaxBody : 0),
        listener_(std::move(listener)) {}

  void begin(std::chrono::milliseconds patience) {
    deadline_.expires_after(patience);
    deadline_.async_wait([weak = weak_from_this(), patience](const error_code& error) {
      const auto self = weak.lock();
      if (self && !error) self->finish("no answer within " + std::to_string(patience.count()) + " ms");
    });
    lookup_ = look_up(loop_, to_, [this](const FoundAddresses& found) { on_found(found); });
  }

  /// No function of the listener is called any more.
  void drop() noexcept {
    over_ = true;
    listener_ = {};
    error_code ignored;
    deadline_.cancel(ignored);
    lookup_.reset();
    socket_.close(ignored);
  }

 private:
  void on_found(const FoundAddresses& found) {
    if (found.addresses.empty()) return finish("the name is not known (" + found.failure + ")");
    std::vector<tcp::endpoint> endpoints;
    for (const SocketAddress& address : found.addresses) {
      tcp::endpoint& endpoint = endpoints.emplace_back();
      endpoint.resize(address.length);
      std::memcpy(endpoint.data(), address.raw(), address.length);
    }
    connect(endpoints);
  }

  void connect(const std::vector<tcp::endpoint>& endpoints) {
    asio::async_connect(socket_, endpoints,
                        [self = shared_from_this()](const error_code& error, const auto&) {
                          if (self->over_) return;
                          if (error) return self->finish(error.message());
                          watch_peer(self->socket_.native_handle());
                          asio::async_write(self->socket_, asio::buffer(self->text_),
                                            [self](const error_code& failure, std::size_t) {
                                              // An answer may be there all the same:
                                              // that the request is too long, for example.
                                              if (!self->over_ && failure)
                                                self->write_failure_ = failure.message();
                                            });
                          self->read();
                        });
  }

  void read() {
    socket_.async_read_some(asio::buffer(piece_),
                            [self = shared_from_this()](const error_code& error, std::size_t size) {
                              if (!self->over_) self->on_read(error, size);
                            });
  }

  void on_read(const error_code& error, std::size_t size) {
    const auto self = shared_from_this();
    try {
      answer_.take({piece_.data(), size});
      if (error == asio::error::eof) answer_.end();
    } catch (const Error& wrong) {
      return finish(write_failure_.empty() ? wrong.what() : write_failure_);
    }
    if (const std::string body = answer_.take_body(); !body.empty()) {
      if (kind_ == HttpKind::stream) deadline_.cancel();
      const auto on_body = listener_.on_body;  // which may end this exchange
      if (on_body) on_body(answer_.status(), body);
      if (over_) return;
    }
    if (answer_.is_whole()) return finish({});
    if (error) return finish(error.message());
    read();
  }

  void finish(const std::string& failure) {
    const auto self = shared_from_this();
    const int status = failure.empty() || answer_.status() != 0 ? answer_.status() : 0;
    const auto on_end = std::move(listener_.on_end);
    drop();
    if (on_end) on_end(status, failure);
  }

  asio::io_context& loop_;
  tcp::socket socket_;
  std::unique_ptr<NameLookup> lookup_;
  asio::steady_timer deadline_;
  Endpoint to_;
  std::string text_, write_failure_;
  HttpKind kind_;
  HttpAnswer answer_;
  HttpListener listener_;
  bool over_ = false;
  std::array<char, 16 * 1024> piece_;
};

class Exchange final : public HttpExchange {
 public:
  explicit Exchange(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  ~Exchange() override { connection_->drop(); }

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace

std::unique_ptr<HttpExchange> start_exchange(asio::io_context& loop, const HttpRequest& request,
                                             HttpKind kind, std::chrono::milliseconds patience,
                                             HttpListener listener) {
  const auto connection = std::make_shared<Connection>(loop, request, kind, std::move(listener));
  connection->begin(patience);
  return std::make_unique<Exchange>(connection);
}

}  // namespace fleetrun::launcher
