// One thread and poll(): an eventfd that wakes it, and the connections.
// The authenticating acceptor has a thread of its own.
#include "collective/store/store_server.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
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
#include "runtime/base/frames.h"
#include "runtime/connect/authenticating_acceptor.h"

namespace fleetrun::collective {
namespace {

using Clock = std::chrono::steady_clock;

/// Ranks end at about the same time, and those that are a little later still want answers.
constexpr std::chrono::seconds kForTheOthers{1};

/// Of a client that has proved the secret.
struct Connection {
  explicit Connection(SealedSocket connected) : socket(std::move(connected)) {}

  /// Why the connection has ended; empty: it goes on. Throws: Error(data) as SealedSocket does.
  std::string receive() {
    std::array<std::byte, 16384> block;
    for (;;) {
      const ssize_t count = socket.receive(block);
      if (count > 0) {
        reader.receive({reinterpret_cast<const char*>(block.data()), static_cast<std::size_t>(count)});
        continue;
      }
      if (count == 0 || errno == ECONNRESET) return "its process has ended";
      return errno == EAGAIN || errno == EINTR
                 ? std::string()
                 : std::string("it can no longer be reached: ") + std::strerror(errno);
    }
  }

  SealedSocket socket;
  FrameReader reader{kMaxStoreBytes};
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
  std::vector<SealedSocket> accepted;  // whom the authenticating acceptor has let in

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
  std::vector<SealedSocket> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(accepted);
  }
  for (SealedSocket& socket : taken) {
    socket.end_when_silent();
    const std::uint64_t client = next_client++;
    connections.try_emplace(client, std::move(socket));
    serve(client);  // what came with its proof
  }
}

void StoreServer::State::send(const std::vector<StoreState::Output>& outputs) {
  for (const StoreState::Output& output : outputs) {
    const auto found = connections.find(output.to);
    if (found == connections.end()) continue;
    SealedSocket& socket = found->second.socket;
    std::string frame;
    append_frame(encode(output.message), frame);
    socket.queue(frame);
    if (!socket.flush()) end(output.to, "its process has ended");
  }
}

/// Remembers it; the loop tells the store state, whose outputs may end others.
void StoreServer::State::end(std::uint64_t client, const std::string& why) {
  if (connections.erase(client) > 0) ended.emplace_back(client, why);
}

void StoreServer::State::serve(std::uint64_t client) {
  try {
    const std::string why = connections.at(client).receive();
    while (connections.contains(client)) {
      const auto body = connections.at(client).reader.next();
      if (!body) break;
      send(store_state.receive(client, decode_store_message(*body)));
    }
    if (!why.empty()) end(client, why);
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
      watched.push_back({connection.socket.fd(),
                         static_cast<short>(POLLIN | (connection.socket.has_output() ? POLLOUT : 0)), 0});
      clients.push_back(client);
    }
    const auto left = last ? std::chrono::ceil<std::chrono::milliseconds>(*last - Clock::now()).count() : -1;
    if (::poll(watched.data(), watched.size(), static_cast<int>(left)) < 0 && errno != EINTR) return;
    if (watched[0].revents != 0) take_accepted();
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const auto found = connections.find(clients[i]);
      if (watched[i + 1].revents == 0 || found == connections.end()) continue;
      if ((watched[i + 1].revents & POLLOUT) != 0 && !found->second.socket.flush()) {
        end(clients[i], "its process has ended");
        continue;
      }
      if ((watched[i + 1].revents & ~POLLOUT) != 0) serve(clients[i]);
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
      {std::move(listener.socket), kStorePurpose, false, [&state](SealedSocket accepted) {
         {
           const std::lock_guard lock(state.mutex);
           state.accepted.push_back(std::move(accepted));
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

}  // namespace fleetrun::collective
