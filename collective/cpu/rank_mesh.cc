#include "collective/cpu/rank_mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "collective/store/store_server.h"
#include "collective/store/store_state.h"
#include "runtime/base/error.h"
#include "runtime/connect/authenticating_acceptor.h"
#include "runtime/secure/sealed_frames.h"

namespace fleetrun::collective {
namespace {

using Clock = Store::Clock;

constexpr const char* kPurpose = "collective link";
constexpr std::size_t kMaxHello = 4096;

std::string bracketed(const std::string& host) {
  return host.find(':') != std::string::npos && host.front() != '[' ? "[" + host + "]" : host;
}

std::string hello_of(const MeshOptions& options, int rank) {
  return options.name + " " + std::to_string(rank);
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

/// The frame that says `hello`, and not a byte of what may be right behind it. False: it does not come.
bool receive_hello(int connection, const SessionKeys& keys, const std::string& hello,
                   Clock::time_point deadline) {
  const std::size_t size = hello.size() + kFrameOverhead;
  std::string bytes;
  while (bytes.size() < size) {
    pollfd readable{connection, POLLIN, 0};
    if (::poll(&readable, 1, milliseconds_until(deadline)) <= 0) return false;
    std::string more(size - bytes.size(), '\0');
    const ssize_t count = ::recv(connection, more.data(), more.size(), MSG_DONTWAIT);
    if (count <= 0) return false;
    bytes += more.substr(0, static_cast<std::size_t>(count));
  }
  FrameOpener opener(keys.from_peer, kMaxHello);
  opener.receive(bytes);
  const auto body = opener.next();
  return body && *body == hello;
}

/// The first bytes of a connection: they fit into its buffer.
bool send_hello(int connection, const SessionKeys& keys, const std::string& hello) {
  std::string frame;
  FrameSealer(keys.to_peer).seal(hello, frame);
  return ::send(connection, frame.data(), frame.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(frame.size());
}

/// Whom the authenticating acceptor has let in.
class AcceptedConnections {
 public:
  void add(AcceptedConnection accepted) {
    const std::lock_guard lock(mutex_);
    accepted_connections_.push_back(std::move(accepted));
    changed_.notify_all();
  }
  std::optional<AcceptedConnection> next(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [&] { return !accepted_connections_.empty(); }))
      return std::nullopt;
    AcceptedConnection accepted = std::move(accepted_connections_.back());
    accepted_connections_.pop_back();
    return accepted;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<AcceptedConnection> accepted_connections_;
};

Proven connect(const Place& place, int to, const std::string& endpoint, const MeshOptions& options,
               Clock::time_point deadline) {
  Proven proven =
      connect_until(endpoint,
                    {.name = "group " + place.group + ": rank " + std::to_string(to) + " at " + endpoint,
                     .access = options.access,
                     .purpose = kPurpose,
                     .secret_hint = std::string("let one fleetrun start all trainers; ") + kSecretHint},
                    deadline);
  const int connection = proven.connection.value();
  if (!send_hello(connection, proven.keys, hello_of(options, place.rank)) ||
      !receive_hello(connection, proven.keys, hello_of(options, to), deadline))
    throw Error(ErrorKind::network,
                "group " + place.group + ": rank " + std::to_string(to) + " at " + endpoint +
                    " does not answer as a rank of this group",
                "look at its log");
  return proven;
}

/// The higher rank that it is; nullopt: none that is expected. It sends nothing before it is answered.
std::optional<int> greet(const Place& place, const std::vector<Proven>& mesh,
                         const AcceptedConnection& accepted, const MeshOptions& options,
                         Clock::time_point deadline) {
  const int connection = accepted.connection.value();
  pollfd readable{connection, POLLIN, 0};
  char block[kMaxHello];
  FrameOpener opener(accepted.keys.from_peer, kMaxHello);
  opener.receive(accepted.early);
  std::optional<std::string_view> hello;
  while (!(hello = opener.next())) {
    if (::poll(&readable, 1, milliseconds_until(deadline)) <= 0) return std::nullopt;
    const ssize_t count = ::recv(connection, block, sizeof block, MSG_DONTWAIT);
    if (count <= 0) return std::nullopt;
    opener.receive({block, static_cast<std::size_t>(count)});
  }
  for (int rank = place.rank + 1; rank < place.size; ++rank) {
    if (mesh[static_cast<std::size_t>(rank)].connection || *hello != hello_of(options, rank)) continue;
    if (send_hello(connection, accepted.keys, hello_of(options, place.rank))) return rank;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Proven> connect_mesh(const Place& place, Store& store, const MeshOptions& options) {
  const auto deadline = Clock::now() + options.meet_within;
  const auto ranks = static_cast<std::size_t>(place.size);
  std::vector<Proven> mesh(ranks);
  const std::string who = "rank " + std::to_string(place.rank) + " of group " + place.group;
  Rejections rejections(who);
  AcceptedConnections accepted_connections;
  Listener listener = listen_at(bracketed(options.address) + ":0", false, who);
  std::vector<AuthListener> auth_listeners;
  auth_listeners.push_back({std::move(listener.socket), kPurpose, false, [&](AcceptedConnection accepted) {
                              accepted_connections.add(std::move(accepted));
                            }});
  const AuthenticatingAcceptor authenticating_acceptor(std::move(auth_listeners), options.access, rejections);
  store.set(options.name + "/endpoint/" + std::to_string(place.rank), listener.endpoint);

  for (int rank = 0; rank < place.rank; ++rank) {
    const std::string endpoint = store.wait(options.name + "/endpoint/" + std::to_string(rank), deadline);
    mesh[static_cast<std::size_t>(rank)] = connect(place, rank, endpoint, options, deadline);
  }
  for (int missing = place.size - 1 - place.rank; missing > 0;) {
    std::optional<AcceptedConnection> accepted = accepted_connections.next(deadline);
    if (!accepted) {
      std::vector<int> absent;
      for (int rank = place.rank + 1; rank < place.size; ++rank)
        if (!mesh[static_cast<std::size_t>(rank)].connection) absent.push_back(rank);
      throw Error(ErrorKind::timeout,
                  "group " + place.group + ": " + rank_names(absent) + " did not connect to rank " +
                      std::to_string(place.rank) + " within " + std::to_string(options.meet_within.count()) +
                      " ms",
                  "look at its log, and whether its host reaches " + listener.endpoint);
    }
    if (const std::optional<int> rank = greet(place, mesh, *accepted, options, deadline)) {
      mesh[static_cast<std::size_t>(*rank)] = {std::move(accepted->connection), accepted->keys};
      --missing;
    }
  }
  for (const Proven& proven : mesh)
    if (proven.connection) end_when_silent(proven.connection.value());
  return mesh;
}

}  // namespace fleetrun::collective
