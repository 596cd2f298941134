// One thread and poll(): the sockets, an eventfd that ends it, and those who have not proven the secret yet.
// Each of them has kPatience.
#include "runtime/connect/authenticating_acceptor.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "runtime/base/defences.h"
#include "runtime/base/error.h"
#include "runtime/base/same_user.h"
#include "runtime/base/version.h"
#include "runtime/secure/first_to_go.h"
#include "runtime/secure/handshake.h"

namespace fleetrun {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::milliseconds kNoDescriptors{50};  // until it is tried again
constexpr std::size_t kMaxUnproven = 512;
constexpr int kBacklog = 1024;
constexpr rlim_t kDescriptors = 65536;

void set_option(int socket, int level, int option) {
  const int on = 1;
  ::setsockopt(socket, level, option, &on, sizeof on);
}

struct AddressText {
  std::string host, port;
};

AddressText text_of(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, port};
}

/// A soft limit of 1024 descriptors, as most systems have it, would be the number of trainers too.
void raise_descriptor_limit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kDescriptors) return;
  limit.rlim_cur = std::min(limit.rlim_max, kDescriptors);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Somebody whose proof is not complete.
struct Visitor {
  UniqueFd connection;
  const AuthListener* auth_listener;
  std::string host;  // of its address
  Handshake handshake;
  Clock::time_point since;
  bool has_spoken = false;
};

enum class Progress { waits, admitted, gone };

}  // namespace

Listener listen_at(const std::string& endpoint, bool shares_port, const std::string& who) {
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorKind::network, who + " cannot serve at " + endpoint + ": " + why,
                 "choose another port, or end what uses this one");
  };
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos) throw refuse("it is not HOST:PORT");
  std::string host = endpoint.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int result = ::getaddrinfo(defends("one address") ? host.c_str() : "0.0.0.0",
                                   endpoint.c_str() + colon + 1, &hints, &found);
  if (result != 0) throw refuse(::gai_strerror(result));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw refuse(std::strerror(errno));
  set_option(socket.value(), SOL_SOCKET, SO_REUSEADDR);
  // Two servers must not share a port without a word; the launcher's own socket never listens.
  if (shares_port) set_option(socket.value(), SOL_SOCKET, SO_REUSEPORT);
  if (::bind(socket.value(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.value(), kBacklog) != 0)
    throw refuse(std::strerror(errno));
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  check_errno(::getsockname(socket.value(), reinterpret_cast<sockaddr*>(&address), &size), "getsockname",
              "serving at " + endpoint, ErrorKind::network);
  return {std::move(socket), endpoint.substr(0, colon + 1) + text_of(address, size).port};
}

struct AuthenticatingAcceptor::State {
  UniqueFd wake;
  std::vector<AuthListener> auth_listeners;
  Access access;
  Rejections& rejections;
  std::deque<Visitor> visitors;  // the longest there first
  bool no_descriptors = false;
  std::thread thread;

  void run();
  int next_timeout() const;
  void accept_all(const AuthListener& auth_listener);
  bool accept_one(const AuthListener& auth_listener);
  void push_out_one();
  Progress serve(Visitor& visitor);
  void turn_away(const Visitor& visitor, const std::string& why) const;
  void send(const Visitor& visitor, const std::string& bytes) const;
};

void AuthenticatingAcceptor::State::run() {
  std::vector<pollfd> watched;
  for (;;) {
    watched.assign({{wake.value(), POLLIN, 0}});
    for (const AuthListener& auth_listener : auth_listeners)
      watched.push_back({no_descriptors ? -1 : auth_listener.socket.value(), POLLIN, 0});
    for (const Visitor& visitor : visitors) watched.push_back({visitor.connection.value(), POLLIN, 0});
    const int ready = ::poll(watched.data(), watched.size(), next_timeout());
    if (ready < 0 && errno != EINTR) return;
    if (watched[0].revents != 0) return;
    no_descriptors = false;
    const auto now = Clock::now();
    std::deque<Visitor> staying;
    for (std::size_t i = 0; i < visitors.size(); ++i) {
      Visitor& visitor = visitors[i];
      const bool has_bytes = ready > 0 && watched[i + 1 + auth_listeners.size()].revents != 0;
      const bool is_late = now - visitor.since >= kPatience;
      if (has_bytes && serve(visitor) != Progress::waits) continue;
      if (!is_late) {
        staying.push_back(std::move(visitor));
      } else {
        turn_away(visitor, "it connected and did not prove the job's secret within " +
                               std::to_string(kPatience.count()) + " s");
      }
    }
    visitors = std::move(staying);
    for (std::size_t i = 0; i < auth_listeners.size(); ++i) {
      if (ready > 0 && watched[i + 1].revents != 0) accept_all(auth_listeners[i]);
    }
  }
}

int AuthenticatingAcceptor::State::next_timeout() const {
  auto left = std::chrono::milliseconds(-1);
  if (!visitors.empty()) {
    left = std::chrono::ceil<std::chrono::milliseconds>(visitors.front().since + kPatience - Clock::now());
    left = std::max(left, std::chrono::milliseconds(0));
  }
  if (no_descriptors) left = left.count() < 0 ? kNoDescriptors : std::min(left, kNoDescriptors);
  return static_cast<int>(left.count());
}

void AuthenticatingAcceptor::State::accept_all(const AuthListener& auth_listener) {
  // A part of the places at a time: who has sent something is heard before it can be pushed out.
  for (std::size_t i = 0; i < kMaxUnproven / 4 && accept_one(auth_listener); ++i) {
  }
}

void AuthenticatingAcceptor::State::push_out_one() {
  const auto gone = first_to_go(
      visitors.begin(), visitors.end(),
      [](const Visitor& visitor) {
        return !visitor.handshake.is_stranger() && defends("a place for proofs");
      },
      visitors.size());
  turn_away(*gone, "too many connections are not authenticated");
  visitors.erase(gone);
}

bool AuthenticatingAcceptor::State::accept_one(const AuthListener& auth_listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  UniqueFd connection(::accept4(auth_listener.socket.value(), reinterpret_cast<sockaddr*>(&address), &size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (visitors.size() >= kMaxUnproven && !defends("strangers give way")) return true;
  const bool is_short =
      !connection && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
  if (is_short && visitors.empty()) no_descriptors = true;
  if ((is_short || visitors.size() >= kMaxUnproven) && !visitors.empty()) {
    push_out_one();
    if (is_short) return true;
  }
  if (!connection) return !is_short && (errno == ECONNABORTED || errno == EINTR || errno == EPROTO);
  if (auth_listener.is_local && !is_same_user(connection.value())) {
    rejections.note("a process of this host", "it is another user's");
    return true;
  }
  if (!auth_listener.is_local) set_option(connection.value(), IPPROTO_TCP, TCP_NODELAY);
  const AddressText from =
      auth_listener.is_local ? AddressText{"a process of this host", ""} : text_of(address, size);
  HandshakeSettings settings;
  settings.side = Side::server;
  settings.secret = access.secret;
  settings.secret_source = access.source;
  settings.purpose = auth_listener.purpose;
  settings.version = FLEETRUN_VERSION;
  settings.peer = auth_listener.is_local ? from.host : from.host + ":" + from.port;
  settings.is_local = auth_listener.is_local;
  visitors.push_back({std::move(connection), &auth_listener, from.host, Handshake(std::move(settings)),
                      Clock::now(), false});
  // Most say at once who they are: they are among those who have spoken before others come.
  if (serve(visitors.back()) != Progress::waits) visitors.pop_back();
  return true;
}

Progress AuthenticatingAcceptor::State::serve(Visitor& visitor) {
  char block[4096];
  const ssize_t count = ::recv(visitor.connection.value(), block, sizeof block, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Progress::waits;
  if (count <= 0) {
    // Who only looks whether somebody listens here is not news:
    // fleetrun does so, before it says that a server is ready.
    if (visitor.has_spoken) turn_away(visitor, "it left without a proof of the job's secret");
    return Progress::gone;
  }
  visitor.has_spoken = true;
  std::string_view bytes(block, static_cast<std::size_t>(count));
  Handshake& handshake = visitor.handshake;
  try {
    if (!defends("proof before the protocol")) {
      visitor.auth_listener->admit({std::move(visitor.connection), std::nullopt, std::string(bytes)});
      return Progress::admitted;
    }
    while (!bytes.empty() && !handshake.finished()) bytes.remove_prefix(handshake.receive(bytes));
    send(visitor, handshake.output());
    if (!handshake.finished()) return Progress::waits;
    visitor.auth_listener->admit(
        {std::move(visitor.connection), handshake.take_records(), std::string(bytes)});
    return Progress::admitted;
  } catch (const Error& error) {
    send(visitor, visitor.handshake.output());
    turn_away(visitor, error.what());
  } catch (const std::exception& error) {
    turn_away(visitor, error.what());
  }
  return Progress::gone;
}

void AuthenticatingAcceptor::State::turn_away(const Visitor& visitor, const std::string& why) const {
  rejections.note(visitor.host, why);
}

void AuthenticatingAcceptor::State::send(const Visitor& visitor, const std::string& bytes) const {
  // A few hundred bytes, the first of the connection:
  // they fit into its buffer, or the peer is up to something.
  if (!bytes.empty())
    static_cast<void>(::send(visitor.connection.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

AuthenticatingAcceptor::AuthenticatingAcceptor(std::vector<AuthListener> auth_listeners, Access access,
                                               Rejections& rejections)
    : state_(new State{
          UniqueFd(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "let connections in")),
          std::move(auth_listeners),
          std::move(access),
          rejections,
          {},
          false,
          {}}) {
  raise_descriptor_limit();
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

AuthenticatingAcceptor::~AuthenticatingAcceptor() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(state_->wake.value(), &one, sizeof one));
  state_->thread.join();
}

}  // namespace fleetrun
