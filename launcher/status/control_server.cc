#include "launcher/status/control_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/same_user.h"
#include "runtime/base/still_here.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using asio::local::stream_protocol;
using boost::system::error_code;
using Json = nlohmann::ordered_json;

constexpr int kBacklog = 16;
constexpr int kFarewellMs = 200;
constexpr std::chrono::milliseconds kBreath{
    100};  // before another accept, when there are no descriptors left

std::string refusal(const Error& error) {
  return json_text(Json{{"ok", false}, {"error", error.what()}, {"hint", error.hint()}}) + "\n";
}

UniqueFd listen_at(const RunEntry& entry) {
  UniqueFd fd(check_errno(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket",
                          "making the control socket"));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // Through the descriptor, since the directory's own path may be longer than an address.
  const std::string path = "/proc/self/fd/" + std::to_string(entry.directory()) + "/" + entry.socket_name();
  if (path.size() >= sizeof address.sun_path)
    throw Error(ErrorKind::host, "the control socket's name is too long: " + entry.socket_name());
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ::unlinkat(entry.directory(), entry.socket_name().c_str(), 0);
  check_errno(::bind(fd.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind",
              "making the control socket");
  check_errno(::fchmodat(entry.directory(), entry.socket_name().c_str(), 0600, 0), "chmod",
              "making the control socket");
  check_errno(::listen(fd.value(), kBacklog), "listen", "making the control socket");
  return fd;
}

/// Whether the kernel says that the other side is this user or root.
bool is_allowed(int socket) {
  const std::optional<ucred> peer = peer_of(socket);
  return peer && (peer->uid == 0 || peer->uid == ::geteuid());
}

class Session;

/// What the sessions share with the server, and what is left of it when the server has gone before them.
struct Shared {
  const Plan* plan = nullptr;
  ControlHandler* handler = nullptr;  // nullptr: the job is over
  std::function<std::string()> status;
  ControlLimits limits;
  std::set<Session*> sessions;  // that are open
};

/// One client: a request is read, answered, the answer written, and the next one read. Owned by the handlers
/// of its operations; at least one is always under way until it is closed.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(stream_protocol::socket socket, std::shared_ptr<Shared> shared)
      : socket_(std::move(socket)), deadline_(socket_.get_executor()), shared_(std::move(shared)) {
    shared_->sessions.insert(this);
  }
  ~Session() { shared_->sessions.erase(this); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool attached() const noexcept { return attached_; }

  void read_on() {
    reading_ = true;
    if (!attached_) arm();
    asio::async_read_until(socket_, asio::dynamic_buffer(received_, shared_->limits.request_bytes), '\n',
                           [self = shared_from_this()](const error_code& error, std::size_t length) {
                             self->on_read(error, length);
                           });
  }

  /// Sends what the other side takes at once, and the rest when it takes more.
  void send(const std::string& text) {
    if (closed_) return;
    if (unsent_.size() + text.size() > shared_->limits.unread_bytes) return close();
    const bool waits = !unsent_.empty();
    unsent_ += text;
    if (!waits) write_on();
  }

  /// Sends what is left without the loop, and closes.
  void farewell(std::chrono::steady_clock::time_point until) {
    while (!closed_ && !unsent_.empty()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
      pollfd ready = {socket_.native_handle(), POLLOUT, 0};
      if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0 || !send_some()) break;
    }
    close();
  }

  void close() {
    if (std::exchange(closed_, true)) return;
    error_code ignored;
    deadline_.cancel();
    socket_.close(ignored);
    shared_->sessions.erase(this);
  }

 private:
  void arm() {
    deadline_.expires_after(shared_->limits.patience);
    deadline_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && self->deadline_.expiry() <= std::chrono::steady_clock::now()) self->close();
    });
  }

  void on_read(const error_code& error, std::size_t length) {
    reading_ = false;
    if (closed_ || !shared_->handler) return;
    if (error == asio::error::not_found) {  // the buffer is full, and there is no end of line in it
      closing_ = true;
      return send(
          refusal(Error(ErrorKind::usage, "the request is longer than " +
                                              std::to_string(shared_->limits.request_bytes) + " bytes")));
    }
    if (error) return close();
    const std::string line = received_.substr(0, length);
    received_.erase(0, length);
    deadline_.cancel();
    try {
      answer(parse_control_request(line, *shared_->plan));
    } catch (const Error& refused) {
      send(refusal(refused));
    }
  }

  void answer(const ControlRequest& request) {
    ControlHandler& handler = *shared_->handler;
    if (std::holds_alternative<StacksRequest>(request)) {
      handler.request_stacks([self = shared_from_this()](const std::string& text) {
        self->send(json_text(Json{{"ok", true}, {"stacks", text}}) + "\n");
      });
      return;
    }
    if (const auto* resize = std::get_if<ResizeRequest>(&request)) {
      handler.request_resize(*resize, [self = shared_from_this()](const std::string& why_not) {
        self->send(why_not.empty() ? "{\"ok\":true}\n" : refusal(Error(ErrorKind::usage, why_not)));
      });
      return;
    }
    if (std::holds_alternative<StatusRequest>(request) || std::holds_alternative<AttachRequest>(request)) {
      attached_ = attached_ || std::holds_alternative<AttachRequest>(request);
      return send("{\"ok\":true,\"status\":" + shared_->status() + "}\n");
    }
    if (const auto* signal = std::get_if<SignalRequest>(&request)) handler.request_signal(*signal);
    if (const auto* restart = std::get_if<RestartRequest>(&request)) {
      const std::string why_not = handler.request_restart(*restart);
      if (!why_not.empty()) throw Error(ErrorKind::usage, why_not);
    }
    send("{\"ok\":true}\n");  // before the stop, which may end the job
    if (const auto* stop = std::get_if<StopRequest>(&request)) handler.request_stop(*stop);
  }

  /// By the system call, not by Asio: farewell() has to know at any moment what has been sent.
  bool send_some() {
    const ssize_t count =
        ::send(socket_.native_handle(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) unsent_.erase(0, static_cast<std::size_t>(count));
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }

  void write_on() {
    if (!send_some()) return close();
    if (unsent_.empty()) return on_all_sent();
    arm();  // anew whenever something was taken: only a client that takes nothing is cut off
    socket_.async_wait(stream_protocol::socket::wait_write,
                       [self = shared_from_this()](const error_code& error) {
                         if (!error && !self->closed_) self->write_on();
                       });
  }

  void on_all_sent() {
    if (closing_) return close();
    deadline_.cancel();
    if (!reading_) read_on();
  }

  stream_protocol::socket socket_;
  asio::steady_timer deadline_;
  std::shared_ptr<Shared> shared_;  // with the server and the other sessions
  std::string received_, unsent_;
  bool attached_ = false, reading_ = false, closing_ = false, closed_ = false;
};

class Server final : public ControlServer {
 public:
  Server(asio::io_context& loop, UniqueFd listener, std::shared_ptr<Shared> shared)
      : acceptor_(loop, stream_protocol(), listener.release()), breath_(loop), shared_(std::move(shared)) {
    accept_on();
  }
  ~Server() override { finish(); }

  void publish(const std::string& line) override {
    for (Session* session : open_sessions()) {
      if (session->attached()) session->send(line);
    }
  }

  bool has_attached() const noexcept override {
    return std::any_of(shared_->sessions.begin(), shared_->sessions.end(),
                       [](const Session* session) { return session->attached(); });
  }

  void finish() override {
    error_code ignored;
    acceptor_.close(ignored);
    breath_.cancel();
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kFarewellMs);
    for (Session* session : open_sessions()) session->farewell(until);
    shared_->handler = nullptr;
    shared_->status = nullptr;
  }

 private:
  /// A copy, since a session that is closed leaves the set.
  std::vector<Session*> open_sessions() const { return {shared_->sessions.begin(), shared_->sessions.end()}; }

  void accept_on() {
    acceptor_.async_accept(still_here_.only([this](const error_code& error, auto socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return accept_later();
      // Turned away by closing: a stranger is owed no answer, and one client too many gets none.
      if (is_allowed(socket.native_handle()) && shared_->sessions.size() < shared_->limits.clients)
        std::make_shared<Session>(std::move(socket), shared_)->read_on();
      accept_on();
    }));
  }

  void accept_later() {
    breath_.expires_after(kBreath);
    breath_.async_wait(still_here_.only([this](const error_code& error) {
      if (!error) accept_on();
    }));
  }

  stream_protocol::acceptor acceptor_;
  asio::steady_timer breath_;
  std::shared_ptr<Shared> shared_;  // with the sessions
  StillHere still_here_;            // the loop goes on when the entry of the job cannot be written
};

}  // namespace

std::unique_ptr<ControlServer> start_control(asio::io_context& loop, const RunEntry& entry, const Plan& plan,
                                             ControlHandler& handler, std::function<std::string()> status,
                                             const ControlLimits& limits) {
  auto shared = std::make_shared<Shared>();
  shared->plan = &plan;
  shared->handler = &handler;
  shared->status = std::move(status);
  shared->limits = limits;
  return std::make_unique<Server>(loop, listen_at(entry), std::move(shared));
}

}  // namespace fleetrun::launcher
