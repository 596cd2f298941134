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

#include "collective/store/store_state.h"
#include "runtime/base/error.h"
#include "runtime/base/frames.h"
#include "runtime/connect/authenticating_acceptor.h"

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

/// The next frame, and not a byte of what may be right behind it; empty: it does not come.
std::string receive_hello(SealedSocket& socket, Clock::time_point deadline) {
  FrameReader reader(kMaxHello);
  for (;;) {
    if (const auto body = reader.next()) return std::string(*body);
    std::byte byte;
    const ssize_t count = socket.receive({&byte, 1});
    if (count > 0) {
      reader.receive({reinterpret_cast<const char*>(&byte), 1});
      continue;
    }
    pollfd readable{socket.fd(), POLLIN, 0};
    const bool waits = count < 0 && (errno == EAGAIN || errno == EINTR);
    if (!waits || ::poll(&readable, 1, milliseconds_until(deadline)) <= 0) return {};
  }
}

/// The first bytes of a connection: they fit into its buffer.
bool send_hello(SealedSocket& socket, const std::string& hello) {
  std::string frame;
  append_frame(hello, frame);
  socket.queue(frame);
  return socket.flush() && !socket.has_output();
}

/// Whom the authenticating acceptor has let in.
class AcceptedConnections {
 public:
  void add(SealedSocket accepted) {
    const std::lock_guard lock(mutex_);
    accepted_.push_back(std::move(accepted));
    changed_.notify_all();
  }
  std::optional<SealedSocket> next(Clock::time_point deadline, Store& store) {
    std::unique_lock lock(mutex_);
    while (accepted_.empty()) {
      store.check();
      const auto until = std::min(deadline, Clock::now() + Store::kLookAgain);
      if (!changed_.wait_until(lock, until, [&] { return !accepted_.empty(); }) && until == deadline)
        return std::nullopt;
    }
    SealedSocket accepted = std::move(accepted_.back());
    accepted_.pop_back();
    return accepted;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<SealedSocket> accepted_;
};

SealedSocket connect(const Place& place, Store& store, int to, const std::string& endpoint,
                     const MeshOptions& options, Clock::time_point deadline) {
  SealedSocket socket =
      connect_until(endpoint,
                    {.name = "group " + place.group + ": rank " + std::to_string(to) + " at " + endpoint,
                     .access = options.access,
                     .purpose = kPurpose,
                     .secret_hint = std::string("let one fleetrun start all trainers; ") + kSecretHint},
                    deadline, [&] { store.check(); });
  if (!send_hello(socket, hello_of(options, place.rank)) ||
      receive_hello(socket, deadline) != hello_of(options, to))
    store.throw_cause(Error(ErrorKind::network,
                            "group " + place.group + ": rank " + std::to_string(to) + " at " + endpoint +
                                " does not answer as a rank of this group",
                            "look at its log"));
  return socket;
}

/// The higher rank that it is; nullopt: none that is expected. It sends nothing before it is answered.
std::optional<int> greet(const Place& place, const std::vector<SealedSocket>& mesh, SealedSocket& accepted,
                         const MeshOptions& options, Clock::time_point deadline) {
  const std::string hello = receive_hello(accepted, deadline);
  for (int rank = place.rank + 1; rank < place.size; ++rank) {
    if (mesh[static_cast<std::size_t>(rank)] || hello != hello_of(options, rank)) continue;
    if (send_hello(accepted, hello_of(options, place.rank))) return rank;
  }
  return std::nullopt;
}

}  // namespace

std::vector<SealedSocket> connect_mesh(const Place& place, Store& store, const MeshOptions& options) {
  const auto deadline = Clock::now() + options.meet_within;
  const auto ranks = static_cast<std::size_t>(place.size);
  std::vector<SealedSocket> mesh(ranks);
  const std::string who = "rank " + std::to_string(place.rank) + " of group " + place.group;
  Rejections rejections(who);
  AcceptedConnections accepted_connections;
  Listener listener = listen_at(bracketed(options.address) + ":0", false, who);
  std::vector<AuthListener> auth_listeners;
  auth_listeners.push_back({std::move(listener.socket), kPurpose, false,
                            [&](SealedSocket accepted) { accepted_connections.add(std::move(accepted)); }});
  const AuthenticatingAcceptor authenticating_acceptor(std::move(auth_listeners), options.access, rejections);
  store.set(options.name + "/endpoint/" + std::to_string(place.rank), listener.endpoint);

  for (int rank = 0; rank < place.rank; ++rank) {
    const std::string endpoint = store.wait(options.name + "/endpoint/" + std::to_string(rank), deadline);
    mesh[static_cast<std::size_t>(rank)] = connect(place, store, rank, endpoint, options, deadline);
  }
  for (int missing = place.size - 1 - place.rank; missing > 0;) {
    std::optional<SealedSocket> accepted = accepted_connections.next(deadline, store);
    if (!accepted) {
      std::vector<int> absent;
      for (int rank = place.rank + 1; rank < place.size; ++rank)
        if (!mesh[static_cast<std::size_t>(rank)]) absent.push_back(rank);
      throw Error(ErrorKind::timeout,
                  "group " + place.group + ": " + rank_names(absent) + " did not connect to rank " +
                      std::to_string(place.rank) + " within " + std::to_string(options.meet_within.count()) +
                      " ms",
                  "look at its log, and whether its host reaches " + listener.endpoint);
    }
    if (const std::optional<int> rank = greet(place, mesh, *accepted, options, deadline)) {
      mesh[static_cast<std::size_t>(*rank)] = std::move(*accepted);
      --missing;
    }
  }
  for (SealedSocket& socket : mesh)
    if (socket) socket.end_when_silent();
  return mesh;
}

}  // namespace fleetrun::collective
