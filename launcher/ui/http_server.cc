#include "launcher/ui/http_server.h"

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <deque>
#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::chrono::milliseconds kBreath{
    100};  // before another accept, when there are no descriptors left

/// Nothing but the page's own files is loaded, nobody frames it, nothing is kept.
void add_defences(http::response<http::string_body>& response) {
  response.set("Content-Security-Policy",
               "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'");
  response.set("X-Content-Type-Options", "nosniff");
  response.set("X-Frame-Options", "DENY");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  response.set("Cross-Origin-Opener-Policy", "same-origin");
  response.set("Referrer-Policy", "no-referrer");
  response.set("Cache-Control", "no-store");
}

/// One request. Owned by the handlers of its operations.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Count = std::shared_ptr<int>;  // of open connections; with the server and the other connections

  Connection(asio::io_context& loop, int socket, Count count, const UiHandler& handler,
             const UiLimits& limits)
      : socket_(loop, asio::ip::tcp::v4(), socket),
        deadline_(loop),
        count_(std::move(count)),
        handler_(handler),
        limits_(limits) {
    ++*count_;
    parser_.header_limit(static_cast<std::uint32_t>(limits.head_bytes));
    parser_.body_limit(limits.body_bytes);
  }
  ~Connection() { --*count_; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Its request is not whole yet.
  bool is_half() const noexcept { return !asked_; }
  void close() {
    error_code ignored;
    socket_.close(ignored);
  }

  void begin() {
    close_after(limits_.to_ask);
    http::async_read(
        socket_, buffer_, parser_,
        [self = shared_from_this()](const error_code& error, std::size_t) { self->on_read(error); });
  }

 private:
  void close_after(std::chrono::milliseconds time) {
    deadline_.expires_after(time);
    deadline_.async_wait([weak = weak_from_this()](const error_code& error) {
      if (const auto self = weak.lock(); self && !error) self->close();
    });
  }

  void on_read(const error_code& error) {
    asked_ = true;
    if (error == http::error::header_limit) return answer(ui_refusal(431, "the request's head is too long"));
    if (error == http::error::body_limit) return answer(ui_refusal(413, "the request is too long"));
    if (error && error.category() != make_error_code(http::error::bad_value).category()) return close();
    if (error == http::error::end_of_stream || error == http::error::partial_message) return close();
    if (error) return answer(ui_refusal(400, "this is not a request"));
    deadline_.cancel();
    const auto& asked = parser_.get();
    UiRequest request{
        std::string(asked.method_string()), std::string(asked.target()), {}, {}, {}, {}, {}, asked.body()};
    const std::pair<const char*, std::string*> headers[] = {{"Host", &request.host},
                                                            {"Origin", &request.origin},
                                                            {"Sec-Fetch-Site", &request.fetch_site},
                                                            {"Cookie", &request.cookie},
                                                            {"Content-Type", &request.content_type}};
    for (const auto& [name, value] : headers) {
      if (asked.count(name) > 1) return answer(ui_refusal(400, std::string(name) + " is there twice"));
      *value = std::string(asked[name]);
    }
    is_head_ = asked.method() == http::verb::head;
    try {
      handler_(request, [self = shared_from_this()](UiAnswer given) { self->answer(std::move(given)); });
    } catch (const Error& refused) {
      answer(ui_refusal(500, refused.what(), refused.hint()));
    }
  }

  void answer(UiAnswer given) {
    if (std::exchange(answered_, true)) return;
    response_.version(11);
    response_.result(static_cast<unsigned>(given.status));
    response_.set(http::field::content_type, std::string(given.type));
    if (!given.cookie.empty())
      response_.set(http::field::set_cookie, given.cookie + "; Path=/; HttpOnly; SameSite=Strict");
    add_defences(response_);
    response_.keep_alive(false);
    response_.content_length(given.body.size());
    if (!is_head_) response_.body() = std::move(given.body);
    close_after(limits_.to_take);
    http::async_write(socket_, response_, [self = shared_from_this()](const error_code& error, std::size_t) {
      // Closed here: what the client still sends would otherwise reset the connection before it has read.
      error_code ignored;
      self->socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
      if (!error) self->discard();
    });
  }

  void discard() {
    socket_.async_read_some(asio::buffer(rest_),
                            [self = shared_from_this()](const error_code& error, std::size_t) {
                              if (!error) self->discard();
                            });
  }

  asio::ip::tcp::socket socket_;
  asio::steady_timer deadline_;
  Count count_;
  const UiHandler handler_;
  const UiLimits limits_;
  boost::beast::flat_buffer buffer_;
  http::request_parser<http::string_body> parser_;
  http::response<http::string_body> response_;
  char rest_[1024];
  bool asked_ = false, answered_ = false, is_head_ = false;
};

class Server final : public UiServer {
 public:
  Server(asio::io_context& loop, UniqueFd listener, UiHandler handler, const UiLimits& limits)
      : loop_(loop),
        listener_(loop, listener.release()),
        breath_(loop),
        handler_(std::move(handler)),
        limits_(limits) {
    wait();
  }

 private:
  void wait() {
    listener_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
      if (error) return;
      UniqueFd socket(::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
        return wait_later();
      std::erase_if(begun_, [](const auto& weak) {
        const auto connection = weak.lock();
        return !connection || !connection->is_half();
      });
      if (socket && (*open_ < limits_.connections || push_out_one())) {
        const auto connection =
            std::make_shared<Connection>(loop_, socket.release(), open_, handler_, limits_);
        begun_.push_back(connection);
        connection->begin();
      }
      wait();
    });
  }

  /// False: every request is whole, and being answered.
  bool push_out_one() {
    if (begun_.empty()) return false;
    begun_.front().lock()->close();
    begun_.pop_front();
    return true;
  }

  void wait_later() {
    breath_.expires_after(kBreath);
    breath_.async_wait([this](const error_code& error) {
      if (!error) wait();
    });
  }

  asio::io_context& loop_;
  asio::posix::stream_descriptor listener_;
  asio::steady_timer breath_;
  const UiHandler handler_;
  const UiLimits limits_;
  Connection::Count open_ = std::make_shared<int>(0);
  std::deque<std::weak_ptr<Connection>> begun_;  // whose requests are not whole, the oldest first
};

}  // namespace

UiAnswer ui_refusal(int status, const std::string& what, const std::string& hint) {
  const nlohmann::ordered_json json = {{"error", what}, {"hint", hint}};
  return {status, "application/json", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

std::unique_ptr<UiServer> serve_ui(asio::io_context& loop, UniqueFd listener, UiHandler handler,
                                   const UiLimits& limits) {
  return std::make_unique<Server>(loop, std::move(listener), std::move(handler), limits);
}

}  // namespace fleetrun::launcher
