#include "launcher/ui/http_server.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>

#include <utility>

#include "launcher/net/request_acceptor.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

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
class Connection final : public RequestConnection, public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& loop, int socket, const UiHandler& handler, const UiLimits& limits)
      : socket_(loop, asio::ip::tcp::v4(), socket), deadline_(loop), handler_(handler), limits_(limits) {
    parser_.header_limit(static_cast<std::uint32_t>(limits.head_bytes));
    parser_.body_limit(limits.body_bytes);
  }

  bool is_half() const noexcept override { return !asked_; }
  void close() noexcept override {
    error_code ignored;
    socket_.close(ignored);
  }

  void begin() override {
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
      : acceptor_(loop, std::move(listener), limits.connections,
                  [&loop, handler = std::move(handler), limits](UniqueFd socket) {
                    return std::make_shared<Connection>(loop, socket.release(), handler, limits);
                  }) {}

 private:
  RequestAcceptor acceptor_;
};

}  // namespace

UiAnswer ui_refusal(int status, const std::string& what, const std::string& hint) {
  const nlohmann::ordered_json json = {{"error", what}, {"hint", hint}};
  return {status, "application/json", json_text(json)};
}

std::unique_ptr<UiServer> serve_ui(asio::io_context& loop, UniqueFd listener, UiHandler handler,
                                   const UiLimits& limits) {
  return std::make_unique<Server>(loop, std::move(listener), std::move(handler), limits);
}

}  // namespace fleetrun::launcher
