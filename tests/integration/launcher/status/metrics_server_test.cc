#include "launcher/status/metrics_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace std::chrono_literals;

namespace {

/// A server in a loop of its own.
class Host {
 public:
  explicit Host(const MetricsAddress& address, std::chrono::milliseconds patience = 20s)
      : server(start_metrics(
            loop, address, [] { return std::string("x 1\n"); }, patience)),
        thread_([this] { loop.run(); }) {}
  ~Host() {
    loop.stop();
    thread_.join();
  }

  boost::asio::io_context loop{1};
  std::unique_ptr<MetricsServer> server;

 private:
  std::thread thread_;
};

UniqueFd connect_to(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(parse_integer(address.substr(colon + 1)).value()));
  REQUIRE(::inet_pton(AF_INET, address.substr(0, colon).c_str(), &where.sin_addr) == 1);
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(fd.value(), reinterpret_cast<sockaddr*>(&where), sizeof where) == 0);
  return fd;
}

UniqueFd connect_to_path(const std::string& path) {
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  path.copy(where.sun_path, sizeof where.sun_path - 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(fd.value(), reinterpret_cast<sockaddr*>(&where), sizeof where) == 0);
  return fd;
}

/// Everything until the other side closes; what it no longer takes is left out.
std::string talk(const UniqueFd& fd, const std::string& request) {
  (void)!::send(fd.value(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  char bytes[4096];
  for (ssize_t count; (count = ::recv(fd.value(), bytes, sizeof bytes, 0)) > 0;)
    answer.append(bytes, static_cast<std::size_t>(count));
  return answer;
}

}  // namespace

TEST_CASE("metrics are served on a port, which is named when any was wanted") {
  Host host({"", "127.0.0.1", 0});
  CHECK(host.server->address().starts_with("127.0.0.1:"));
  CHECK(!host.server->address().ends_with(":0"));
  for (int i = 0; i < 3; ++i)
    CHECK(talk(connect_to(host.server->address()), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
              .ends_with("\r\n\r\nx 1\n"));
}

TEST_CASE("metrics are served on a unix socket, which replaces a left one and goes with the server") {
  const tests::TempDir directory;
  const std::string path = directory.file("metrics");
  sockaddr_un left = {};
  left.sun_family = AF_UNIX;
  path.copy(left.sun_path, sizeof left.sun_path - 1);
  {
    const UniqueFd killed(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(killed.value(), reinterpret_cast<sockaddr*>(&left), sizeof left) == 0);
  }
  {
    Host host({path, "", 0});
    CHECK(host.server->address() == "unix:" + path);
    struct stat info = {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
    CHECK(talk(connect_to_path(path), "GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 OK"));
  }
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("an address that cannot be had is refused with a hint") {
  const tests::TempDir directory;
  directory.write("file", "precious");
  Host host({"", "127.0.0.1", 0});
  boost::asio::io_context loop;
  const auto port = static_cast<std::uint16_t>(
      parse_integer(host.server->address().substr(host.server->address().rfind(':') + 1)).value());
  for (const MetricsAddress& address :
       {MetricsAddress{"", "127.0.0.1", port}, MetricsAddress{directory.file("file"), "", 0},
        MetricsAddress{directory.file("no/such"), "", 0}, MetricsAddress{std::string(200, 'x'), "", 0},
        MetricsAddress{"", "no such host", 80}}) {
    try {
      start_metrics(loop, address, [] { return std::string(); });
      FAIL_CHECK("not refused");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).starts_with("metrics cannot be served at "));
      CHECK(error.hint() == "choose another address with --metrics");
    }
  }
  CHECK(std::filesystem::file_size(directory.file("file")) == 8);
}

TEST_CASE("a head that does not end is refused, and who says nothing is cut off") {
  Host host({"", "127.0.0.1", 0}, 50ms);
  CHECK(talk(connect_to(host.server->address()), std::string(20'000, 'x')).starts_with("HTTP/1.1 431"));
  CHECK(talk(connect_to(host.server->address()), "") == "");
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 40; ++i) idle.push_back(connect_to(host.server->address()));
  for (const UniqueFd& fd : idle) CHECK(talk(fd, "") == "");
  CHECK(
      talk(connect_to(host.server->address()), "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST_CASE("a thousand half requests do not keep metrics from who asks for them") {
  Host host({"", "127.0.0.1", 0});
  std::vector<UniqueFd> half;
  for (int i = 0; i < 1000; ++i) {
    UniqueFd fd = connect_to(host.server->address());
    (void)!::send(fd.value(), "GET /met", 8, MSG_NOSIGNAL);
    if (i % 4 == 0) half.push_back(std::move(fd));
  }
  CHECK(
      talk(connect_to(host.server->address()), "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
}
