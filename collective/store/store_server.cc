// One thread and poll(): an eventfd that wakes it, and the connections.
// The authenticating acceptor has a thread of its own.
#include "collective/store/store_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "collective/store/store_state.h"
#include "runtime/base/error.h"
#include "runtime/connect/authenticating_acceptor.h"
#include "runtime/secure/sealed_frames.h"

namespace fleetrun::collective {
namespace {

using Clock = std::chrono::steady_clock;

/// Ranks end at about the same time, and those that are a little later still want answers.
constexpr std::chrono::seconds kForTheOthers{1};

/// Of a client that has proved the secret.
struct Connection {
  Connection(UniqueFd file, const SessionKeys& keys, std::string_view early)
      : socket(std::move(file)), sealer(keys.to_peer), opener(keys.from_peer, kMaxStoreBytes) {
    opener.receive(early);
  }

  bool has_output() const noexcept { return sent < output.size(); }
  /// False when the connection has ended.
  bool flush() {
    while (has_output()) {
      const ssize_t count =
          ::send(socket.value(), output.data() + sent, output.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      sent += static_cast<std::size_t>(count);
    }
    output.clear();
    sent = 0;
    return true;
  }
  /// Why the connection has ended; empty: it goes on.
  std::string receive() {
    char block[16384];
    const ssize_t count = ::recv(socket.value(), block, sizeof block, MSG_DONTWAIT);
    if (count > 0) {
      opener.receive({block, static_cast<std::size_t>(count)});
      return {};
    }
    if (count == 0 || errno == ECONNRESET) return "its process has ended";
    return errno == EAGAIN || errno == EINTR
               ? std::string()
               : std::string("it can no longer be reached: ") + std::strerror(errno);
  }

  UniqueFd socket;
  FrameSealer sealer;
  FrameOpener opener;
  std::string output;
  std::size_t sent = 0;
};

}  // namespace

struct StoreServer::State {
  explicit State(StoreServerOptions wanted)
      : options(std::move(wanted)),
        rejections("the store of rank 0"),
        woken(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "serve the job's store")),
        store_state(options.size, options.attempt) {}

  void wake() {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(woken.value(), &one, sizeof one));
  }
  void run();
  void take_accepted();
  void serve(std::uint64_t client);
  void end(std::uint64_t client, const std::string& why);
  void send(const std::vector<StoreState::Output>& outputs);

  StoreServerOptions options;
  Rejections rejections;
  std::string endpoint;
  UniqueFd woken;
  std::atomic<bool> stopping = false;
  std::mutex mutex;
  std::vector<AcceptedConnection> accepted_connections;  // whom the authenticating acceptor has let in

  // The thread's own.
  StoreState store_state;
  std::map<std::uint64_t, Connection> connections;
  std::vector<std::pair<std::uint64_t, std::string>> ended;  // and why; still to be told to the store state
  std::uint64_t next_client = 1;

  std::optional<AuthenticatingAcceptor> authenticating_acceptor;
  std::thread thread;
};

void StoreServer::State::take_accepted() {
  std::uint64_t count;
  static_cast<void>(!::read(woken.value(), &count, sizeof count));
  std::vector<AcceptedConnection> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(accepted_connections);
  }
  for (AcceptedConnection& accepted : taken) {
    end_when_silent(accepted.connection.value());
    const std::uint64_t client = next_client++;
    connections.try_emplace(client, std::move(accepted.connection), accepted.keys, accepted.early);
    serve(client);
  }
}

void StoreServer::State::send(const std::vector<StoreState::Output>& outputs) {
  for (const StoreState::Output& output : outputs) {
    const auto found = connections.find(output.to);
    if (found == connections.end()) continue;
    found->second.sealer.seal(encode(output.message), found->second.output);
    if (!found->second.flush()) end(output.to, "its process has ended");
  }
}

/// Remembers it; the loop tells the store state, whose outputs may end others.
void StoreServer::State::end(std::uint64_t client, const std::string& why) {
  if (connections.erase(client) > 0) ended.emplace_back(client, why);
}

void StoreServer::State::serve(std::uint64_t client) {
  try {
    while (connections.contains(client)) {
      const auto body = connections.at(client).opener.next();
      if (!body) return;
      send(store_state.receive(client, decode_store_message(*body)));
    }
  } catch (const Error& error) {
    rejections.note("client " + std::to_string(client), error.what());
    end(client, std::string("its connection is broken: ") + error.what());
  }
}

void StoreServer::State::run() {
  std::vector<pollfd> watched;
  std::vector<std::uint64_t> clients;
  std::optional<Clock::time_point> last;
  for (;;) {
    if (stopping && !last) last = Clock::now() + kForTheOthers;
    if (last && (connections.empty() || Clock::now() >= *last)) return;
    watched.assign({{last ? -1 : woken.value(), POLLIN, 0}});
    clients.clear();
    for (const auto& [client, connection] : connections) {
      watched.push_back({connection.socket.value(),
                         static_cast<short>(POLLIN | (connection.has_output() ? POLLOUT : 0)), 0});
      clients.push_back(client);
    }
    const auto left = last ? std::chrono::ceil<std::chrono::milliseconds>(*last - Clock::now()).count() : -1;
    if (::poll(watched.data(), watched.size(), static_cast<int>(left)) < 0 && errno != EINTR) return;
    if (watched[0].revents != 0) take_accepted();
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const auto found = connections.find(clients[i]);
      if (watched[i + 1].revents == 0 || found == connections.end()) continue;
      if ((watched[i + 1].revents & POLLOUT) != 0 && !found->second.flush()) {
        end(clients[i], "its process has ended");
        continue;
      }
      if ((watched[i + 1].revents & ~POLLOUT) == 0) continue;
      const std::string why = found->second.receive();
      serve(clients[i]);
      if (!why.empty()) end(clients[i], why);
    }
    while (!ended.empty()) {
      const auto [client, why] = std::move(ended.back());
      ended.pop_back();
      send(store_state.end(client, why));
    }
  }
}

StoreServer::StoreServer(StoreServerOptions options) : state_(std::make_unique<State>(std::move(options))) {
  State& state = *state_;
  Listener listener =
      listen_at(state.options.endpoint, state.options.shares_port, "rank 0, which has the job's store,");
  state.endpoint = listener.endpoint;
  state.thread = std::thread([&state] { state.run(); });
  std::vector<AuthListener> auth_listeners;
  auth_listeners.push_back(
      {std::move(listener.socket), kStorePurpose, false, [&state](AcceptedConnection accepted) {
         {
           const std::lock_guard lock(state.mutex);
           state.accepted_connections.push_back(std::move(accepted));
         }
         state.wake();
       }});
  state.authenticating_acceptor.emplace(std::move(auth_listeners), state.options.access, state.rejections);
}

StoreServer::~StoreServer() {
  state_->authenticating_acceptor.reset();
  state_->stopping = true;
  state_->wake();
  state_->thread.join();
}

const std::string& StoreServer::endpoint() const noexcept {
  return state_->endpoint;
}

void end_when_silent(int connection) noexcept {
  const auto set = [connection](int level, int option, int value) {
    ::setsockopt(connection, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 5);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 15000);  // ms
}

}  // namespace fleetrun::collective
