// As much of HTTP/1.1 as a scraper needs. Beast would do the same with 2 MB more of code in fleetrun.
#include "launcher/status/metrics_server.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "launcher/net/request_acceptor.h"
#include "runtime/base/endpoint.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMaxHead = 8192;
constexpr std::size_t kMaxConnections = 16;
constexpr int kBacklog = SOMAXCONN;  // who meets a full queue is dropped, and tries again after a second
constexpr std::string_view kUnix = "unix:";
constexpr const char* kHint =
    "write --metrics=9090 (on this host alone), --metrics=0.0.0.0:9090 or --metrics=/path/of/a/socket";

[[noreturn]] void refuse(const std::string& address, int error) {
  throw Error(ErrorKind::host,
              "metrics cannot be served at " + address + ": " + std::generic_category().message(error),
              "choose another address with --metrics");
}

UniqueFd listen_unix(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) refuse(std::string(kUnix) + path, ENAMETOOLONG);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  struct stat info = {};
  if (::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) ::unlink(path.c_str());
  if (!fd || ::bind(fd.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(fd.value(), kBacklog) != 0)
    refuse(std::string(kUnix) + path, errno);
  return fd;
}

UniqueFd listen_tcp(const MetricsAddress& where) {
  const std::string shown = to_string(Endpoint{where.host, where.port});
  addrinfo hints = {}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const int failure = ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &list);
  if (failure != 0)
    throw Error(ErrorKind::host, "metrics cannot be served at " + shown + ": " + ::gai_strerror(failure),
                "choose another address with --metrics");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(list, ::freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* address = list; address; address = address->ai_next) {
    UniqueFd fd(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    if (fd && ::setsockopt(fd.value(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(fd.value(), address->ai_addr, address->ai_addrlen) == 0 && ::listen(fd.value(), kBacklog) == 0)
      return fd;
    error = errno;
  }
  refuse(shown, error);
}

std::uint16_t port_of(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  char port[16] = "0";
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, nullptr, 0, port, sizeof port,
                  NI_NUMERICSERV);
  return static_cast<std::uint16_t>(parse_integer(port).value_or(0));
}

std::string http(std::string_view status, std::string_view type, std::string_view body,
                 bool with_body = true) {
  std::string text = "HTTP/1.1 ";
  text.append(status).append("\r\nContent-Type: ").append(type);
  text.append("\r\nContent-Length: ").append(std::to_string(body.size()));
  text.append("\r\nConnection: close\r\n\r\n");
  return with_body ? text.append(body) : text;
}

/// One request. Owned by the handlers of its operations.
class Connection final : public RequestConnection, public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& loop, int socket, const std::function<std::string()>& text,
             std::chrono::milliseconds patience)
      : socket_(loop, socket), deadline_(loop), text_(text), patience_(patience) {}

  bool is_half() const noexcept override { return answer_.empty(); }
  void close() noexcept override {
    error_code ignored;
    socket_.close(ignored);
  }

  void begin() override {
    // One deadline for all of it: the request, and as long again for the answer.
    deadline_.expires_after(2 * patience_);
    deadline_.async_wait([weak = weak_from_this()](const error_code& error) {
      if (const auto self = weak.lock(); self && !error) self->close();
    });
    asio::async_read_until(socket_, asio::dynamic_buffer(head_, kMaxHead), "\r\n\r\n",
                           [self = shared_from_this()](const error_code& error, std::size_t) {
                             if (!error || error == asio::error::not_found) self->answer(!error);
                           });
  }

 private:
  void answer(bool whole) {
    answer_ = whole ? answer_http(head_, text_)
                    : http("431 Request Header Fields Too Large", "text/plain", "too long\n");
    asio::async_write(socket_, asio::buffer(answer_),
                      [self = shared_from_this()](const error_code&, std::size_t) {
                        // Closed here: what the client still sends would otherwise reset the connection
                        // before it has read.
                        ::shutdown(self->socket_.native_handle(), SHUT_WR);
                        self->discard();
                      });
  }

  void discard() {
    socket_.async_read_some(asio::buffer(rest_),
                            [self = shared_from_this()](const error_code& error, std::size_t) {
                              if (!error) self->discard();
                            });
  }

  asio::posix::stream_descriptor socket_;
  asio::steady_timer deadline_;
  std::function<std::string()> text_;
  std::chrono::milliseconds patience_;
  std::string head_, answer_;
  char rest_[1024];
};

class Server final : public MetricsServer {
 public:
  Server(asio::io_context& loop, UniqueFd listener, std::string address, std::function<std::string()> text,
         std::chrono::milliseconds patience)
      : address_(std::move(address)),
        acceptor_(loop, std::move(listener), kMaxConnections,
                  [&loop, text = std::move(text), patience](UniqueFd socket) {
                    return std::make_shared<Connection>(loop, socket.release(), text, patience);
                  }) {}
  ~Server() override {
    if (address_.starts_with(kUnix)) ::unlink(address_.c_str() + kUnix.size());
  }

  const std::string& address() const noexcept override { return address_; }

 private:
  const std::string address_;
  RequestAcceptor acceptor_;
};

}  // namespace

MetricsAddress parse_metrics_address(std::string_view text) {
  MetricsAddress address;
  if (text.starts_with(kUnix) || text.starts_with("/")) {
    address.unix_path = text.substr(text.starts_with("/") ? 0 : kUnix.size());
    if (address.unix_path.empty())
      throw Error(ErrorKind::usage, "--metrics=" + printable(text) + " has no path", kHint);
    return address;
  }
  const bool any_port = text == "0" || text.ends_with(":0");
  std::string whole(text);
  if (text.starts_with(":")) whole.insert(0, "127.0.0.1");
  if (parse_integer(text)) whole.insert(0, "127.0.0.1:");
  if (any_port) whole.back() = '1';
  try {
    const Endpoint endpoint = parse_endpoint(whole);
    address.host = endpoint.host;
    address.port = any_port ? 0 : endpoint.port;
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, "--metrics=" + printable(text) + ": " + error.what(), kHint);
  }
  return address;
}

std::unique_ptr<MetricsServer> start_metrics(asio::io_context& loop, const MetricsAddress& address,
                                             std::function<std::string()> text,
                                             std::chrono::milliseconds patience) {
  if (!address.unix_path.empty())
    return std::make_unique<Server>(loop, listen_unix(address.unix_path),
                                    std::string(kUnix) + address.unix_path, std::move(text), patience);
  UniqueFd listener = listen_tcp(address);
  const std::string shown = to_string(Endpoint{address.host, port_of(listener.value())});
  return std::make_unique<Server>(loop, std::move(listener), shown, std::move(text), patience);
}

std::string answer_http(std::string_view head, const std::function<std::string()>& text) {
  constexpr std::string_view kPlain = "text/plain; charset=utf-8";
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t first = line.find(' '), second = line.find(' ', first == line.npos ? first : first + 1);
  if (second == line.npos || !line.substr(second + 1).starts_with("HTTP/1."))
    return http("400 Bad Request", kPlain, "this is not a request\n");
  const std::string_view method = line.substr(0, first);
  std::string_view path = line.substr(first + 1, second - first - 1);
  path = path.substr(0, path.find('?'));
  if (method != "GET" && method != "HEAD")
    return http("405 Method Not Allowed", kPlain, "only GET is answered\n");
  if (path != "/metrics") return http("404 Not Found", kPlain, "look at /metrics\n", method == "GET");
  return http("200 OK", "text/plain; version=0.0.4; charset=utf-8", text(), method == "GET");
}

}  // namespace fleetrun::launcher
