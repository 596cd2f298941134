#include "launcher/ui/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "launcher/net/socket_address.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace std::chrono_literals;

namespace {

/// A server that answers with what it was asked, in a loop of its own.
class UiHost {
 public:
  explicit UiHost(const UiLimits& limits) {
    UniqueFd listener = listening_socket(numeric_address({"127.0.0.1", 0}).value());
    REQUIRE(listener);
    address_ = local_address(listener.value()).value();
    server_ = serve_ui(
        loop_, std::move(listener),
        [](const UiRequest& request, const Respond& respond) {
          respond({200, "text/plain", request.method + " " + request.target + " " + request.body});
        },
        limits);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~UiHost() {
    loop_.stop();
    thread_.join();
  }

  UniqueFd connect() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(fd.value(), address_.raw(), address_.length) == 0);
    return fd;
  }

  /// What comes until the other side closes.
  static std::string answer_to(const UniqueFd& fd, const std::string& request) {
    (void)!::send(fd.value(), request.data(), request.size(), MSG_NOSIGNAL);
    std::string answer;
    char bytes[4096];
    for (ssize_t count; (count = ::recv(fd.value(), bytes, sizeof bytes, 0)) > 0;)
      answer.append(bytes, static_cast<std::size_t>(count));
    return answer;
  }

 private:
  boost::asio::io_context loop_{1};
  SocketAddress address_;
  std::unique_ptr<UiServer> server_;
  std::thread thread_;
};

constexpr const char* kAsked = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

}  // namespace

TEST_CASE("every answer keeps other sites and their scripts out, and ends the connection") {
  const UiHost host({});
  const std::string answer = UiHost::answer_to(host.connect(), kAsked);
  CHECK(answer.starts_with("HTTP/1.1 200"));
  CHECK(answer.ends_with("\r\n\r\nGET /x "));
  for (const char* header : {"Content-Security-Policy: default-src 'self';",
                             "X-Content-Type-Options: nosniff", "Cache-Control: no-store",
                             "X-Frame-Options: DENY", "Referrer-Policy: no-referrer", "Connection: close"})
    CHECK_MESSAGE(answer.find(header) != std::string::npos, header);
  const std::string head = UiHost::answer_to(host.connect(), "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(head.ends_with("\r\n\r\n"));
  CHECK(UiHost::answer_to(host.connect(), "POST /y HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}")
            .ends_with("POST /y {}"));
}

TEST_CASE("what is not a request is refused") {
  const UiHost host({});
  CHECK(UiHost::answer_to(host.connect(), "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
  CHECK(UiHost::answer_to(host.connect(), "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
            .starts_with("HTTP/1.1 400"));
}

TEST_CASE("a request that is too long is refused, whatever it announces") {
  UiLimits limits;
  limits.head_bytes = 512;
  limits.body_bytes = 100;
  const UiHost host(limits);
  CHECK(UiHost::answer_to(host.connect(), "GET / HTTP/1.1\r\nX: " + std::string(4000, 'a') + "\r\n\r\n")
            .starts_with("HTTP/1.1 431"));
  CHECK(UiHost::answer_to(host.connect(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000000\r\n\r\n")
            .starts_with("HTTP/1.1 413"));
  CHECK(UiHost::answer_to(
            host.connect(),
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n80\r\n" + std::string(128, 'a'))
            .starts_with("HTTP/1.1 413"));
}

TEST_CASE("who asks slowly is cut off") {
  UiLimits limits;
  limits.to_ask = 100ms;
  const UiHost host(limits);
  CHECK(UiHost::answer_to(host.connect(), "").empty());
  CHECK(UiHost::answer_to(host.connect(), "GET / HTTP/1.1\r\nHost:").empty());
  CHECK(UiHost::answer_to(host.connect(), kAsked).starts_with("HTTP/1.1 200"));
}

TEST_CASE("who holds all connections without asking makes room") {
  UiLimits limits;
  limits.connections = 4;
  limits.to_ask = 60s;
  const UiHost host(limits);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(host.connect());
  CHECK(UiHost::answer_to(host.connect(), kAsked).starts_with("HTTP/1.1 200"));
  CHECK(UiHost::answer_to(silent.front(), "").empty());  // closed
}
