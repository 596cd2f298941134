// One thread and poll(). Parcels are asked for while less than kMaxQueued waits to be sent, and what comes
// is always taken, so that nobody waits for somebody who waits for it.
#include "runtime/trainer/global_shuffle.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "ps/rpc/dial.h"
#include "runtime/base/error.h"
#include "runtime/base/frames.h"
#include "runtime/connect/authenticating_acceptor.h"

namespace fleetrun::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxQueued = std::size_t{8} << 20;
constexpr std::size_t kMaxFrame = std::size_t{2200} << 20;  // a block and its shape
constexpr std::size_t kRead = std::size_t{256} << 10;
constexpr std::chrono::milliseconds kRetry{200};

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

/// A connection to another trainer that has proved the secret.
class Peer {
 public:
  explicit Peer(SealedSocket socket) : socket_(std::move(socket)) {}

  int fd() const noexcept { return socket_.fd(); }
  bool has_output() const noexcept { return socket_.has_output(); }
  std::size_t queued() const noexcept { return socket_.queued(); }
  Clock::time_point heard() const noexcept { return heard_; }

  void queue(std::string_view body) {
    socket_.queue(frame_head(body.size()));
    socket_.queue(body);
  }

  /// The next whole frame's body; valid until the next call. Throws: Error(data).
  std::optional<std::string_view> next() { return reader_.next(); }

  /// Sends what can be sent. False when the connection has ended.
  bool flush() {
    const std::size_t before = queued();
    if (!socket_.flush()) return false;
    if (queued() < before) heard_ = Clock::now();
    return true;
  }

  /// Receives what is there. False when the connection has ended.
  /// Throws: Error(data) for what the other end has not sent.
  bool receive() {
    static thread_local std::array<std::byte, kRead> block;
    const ssize_t count = socket_.receive(block);
    if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
    reader_.receive({reinterpret_cast<const char*>(block.data()), static_cast<std::size_t>(count)});
    heard_ = Clock::now();
    return true;
  }
  /// More can be received, and poll() does not know of it.
  bool has_input() const noexcept { return !is_done && socket_.has_input(); }

  bool is_done = false;  // its last parcel has come

 private:
  SealedSocket socket_;
  FrameReader reader_{kMaxFrame};
  Clock::time_point heard_ = Clock::now();
};

}  // namespace

struct GlobalShuffle::State {
  explicit State(GlobalShuffleOptions wanted)
      : options(std::move(wanted)),
        rejections("the global shuffle of trainer " + std::to_string(options.rank)),
        woken(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "cannot shuffle")),
        peers(options.trainers) {}

  std::string name(std::uint32_t trainer) const {
    return "trainer " + std::to_string(trainer) + " at " + endpoints.at(trainer);
  }
  Error lost(std::uint32_t trainer, const std::string& why) const {
    return Error(ErrorKind::network, "global_shuffle: " + name(trainer) + " " + why,
                 "look at its log; no examples are left in memory here: load them again");
  }
  void admit(SealedSocket socket);
  void connect();
  void advance_dials(std::vector<std::optional<ps::Dial>>& dials, Clock::time_point deadline);
  void take_accepted();
  void greet(std::vector<std::unique_ptr<Peer>>& strangers);
  void send_more(const std::function<std::vector<Parcel>()>& next);
  void wait_for_bytes();
  bool receive_from(std::uint32_t trainer);
  void take_frames(std::uint32_t trainer, const std::function<void(std::uint32_t, std::string_view)>& take);
  bool is_done() const;

  const GlobalShuffleOptions options;
  Rejections rejections;
  std::vector<std::string> endpoints;
  std::uint16_t port = 0;
  UniqueFd woken;
  std::mutex mutex;
  std::vector<SealedSocket> accepted;            // whom the authenticating acceptor has let in
  std::vector<std::unique_ptr<Peer>> strangers;  // who have not said their rank yet
  std::vector<std::unique_ptr<Peer>> peers;      // by rank; none for this trainer
  bool has_more = true;
  std::optional<AuthenticatingAcceptor> authenticating_acceptor;
};

void GlobalShuffle::State::admit(SealedSocket socket) {
  const std::lock_guard lock(mutex);
  accepted.push_back(std::move(socket));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(woken.value(), &one, sizeof one);
}

void GlobalShuffle::State::take_accepted() {
  std::uint64_t count;
  [[maybe_unused]] const auto read = ::read(woken.value(), &count, sizeof count);
  const std::lock_guard lock(mutex);
  for (SealedSocket& socket : accepted) strangers.push_back(std::make_unique<Peer>(std::move(socket)));
  accepted.clear();
}

/// Who has said its rank becomes a peer.
void GlobalShuffle::State::greet(std::vector<std::unique_ptr<Peer>>& waiting) {
  for (std::unique_ptr<Peer>& stranger : waiting) {
    if (!stranger->receive()) {
      stranger = nullptr;
      continue;
    }
    const std::optional<std::string_view> hello = stranger->next();
    if (!hello) continue;
    if (hello->size() != 8 || number_at(*hello, 4) != options.trainers ||
        number_at(*hello, 0) <= options.rank || number_at(*hello, 0) >= options.trainers ||
        peers[number_at(*hello, 0)])
      throw Error(ErrorKind::network,
                  "global_shuffle: a trainer of another job, or of other ranks, has connected",
                  "let one fleetrun start all trainers");
    const std::uint32_t rank = number_at(*hello, 0);
    peers[rank] = std::move(stranger);
  }
  std::erase(waiting, nullptr);
}

void GlobalShuffle::State::advance_dials(std::vector<std::optional<ps::Dial>>& dials,
                                         Clock::time_point deadline) {
  for (std::uint32_t trainer = 0; trainer < dials.size(); ++trainer) {
    std::optional<ps::Dial>& dial = dials[trainer];
    if (peers[trainer]) continue;
    if (!dial) dial.emplace(endpoints[trainer], name(trainer), options.access, 0);
    dial->advance();
    if (dial->has_failed()) {
      const std::string reason = dial->reason();
      dial.reset();  // and again
      if (Clock::now() >= deadline) throw lost(trainer, "cannot be reached: " + reason);
    } else if (dial->is_connected()) {
      peers[trainer] = std::make_unique<Peer>(dial->take_connection());
      const std::uint32_t hello[] = {options.rank, options.trainers};
      peers[trainer]->queue({reinterpret_cast<const char*>(hello), sizeof hello});
      static_cast<void>(
          peers[trainer]->flush());  // now, so that it is known who was here, should this one end
      dial.reset();
    }
  }
}

void GlobalShuffle::State::connect() {
  const Clock::time_point deadline = Clock::now() + options.patience;
  std::vector<std::optional<ps::Dial>> dials(options.rank);
  for (;;) {
    advance_dials(dials, deadline);
    take_accepted();
    greet(strangers);
    std::uint32_t missing = options.trainers;
    for (std::uint32_t t = 0; t < options.trainers && missing == options.trainers; ++t)
      if (t != options.rank && !peers[t]) missing = t;
    if (missing == options.trainers) return;
    if (Clock::now() >= deadline)
      throw lost(missing,
                 "has not connected within " + std::to_string(options.patience.count() / 1000) + " s");
    std::vector<pollfd> watched = {{woken.value(), POLLIN, 0}};
    for (const auto& dial : dials)
      if (dial) watched.push_back(dial->wanted());
    for (const auto& stranger : strangers) watched.push_back({stranger->fd(), POLLIN, 0});
    ::poll(watched.data(), watched.size(), static_cast<int>(kRetry.count()));
  }
}

void GlobalShuffle::State::send_more(const std::function<std::vector<Parcel>()>& next) {
  const auto queued = [this] {
    std::size_t sum = 0;
    for (const auto& peer : peers) sum += peer ? peer->queued() : 0;
    return sum;
  };
  while (has_more && queued() < kMaxQueued) {
    const std::vector<Parcel> parcels = next();
    for (const Parcel& parcel : parcels) peers.at(parcel.trainer)->queue(parcel.bytes);
    if (!parcels.empty()) continue;
    has_more = false;
    for (const auto& peer : peers)
      if (peer) peer->queue("");
  }
}

bool GlobalShuffle::State::is_done() const {
  return !has_more && std::all_of(peers.begin(), peers.end(), [](const auto& peer) {
    return !peer || (peer->is_done && !peer->has_output());
  });
}

bool GlobalShuffle::State::receive_from(std::uint32_t trainer) {
  try {
    return peers[trainer]->receive();
  } catch (const Error& error) {
    throw lost(trainer, std::string("sent what cannot be read: ") + error.what());
  }
}

void GlobalShuffle::State::wait_for_bytes() {
  std::vector<pollfd> watched;
  for (const auto& peer : peers) {
    const bool is_over = !peer || (peer->is_done && !peer->has_output());
    watched.push_back({is_over ? -1 : peer->fd(),
                       static_cast<short>((peer && !peer->is_done ? POLLIN : 0) |
                                          (peer && peer->has_output() ? POLLOUT : 0)),
                       0});
  }
  const bool has_input =
      std::any_of(peers.begin(), peers.end(), [](const auto& peer) { return peer && peer->has_input(); });
  ::poll(watched.data(), watched.size(), has_input ? 0 : static_cast<int>(kRetry.count()));
  for (std::uint32_t trainer = 0; trainer < options.trainers; ++trainer) {
    if (watched[trainer].fd < 0) continue;
    Peer& peer = *peers[trainer];
    const bool has_bytes = peer.has_input() || (!peer.is_done && (watched[trainer].revents & ~POLLOUT) != 0);
    const bool ended = (has_bytes && !receive_from(trainer)) || (peer.has_output() && !peer.flush());
    if (ended) throw lost(trainer, "has ended its connection");
    if (Clock::now() - peer.heard() >= options.patience)
      throw lost(trainer, "was silent for " + std::to_string(options.patience.count() / 1000) + " s");
  }
}

void GlobalShuffle::State::take_frames(std::uint32_t trainer,
                                       const std::function<void(std::uint32_t, std::string_view)>& take) {
  Peer& peer = *peers[trainer];
  while (!peer.is_done) {
    std::optional<std::string_view> body;
    try {
      body = peer.next();
    } catch (const Error& error) {
      throw lost(trainer, std::string("sent what cannot be read: ") + error.what());
    }
    if (!body) return;
    if (body->empty())
      peer.is_done = true;
    else
      take(trainer, *body);
  }
}

GlobalShuffle::GlobalShuffle(GlobalShuffleOptions options)
    : state_(std::make_unique<State>(std::move(options))) {
  const std::string& host = state_->options.host;
  const bool is_ipv6 = host.find(':') != std::string::npos && host.front() != '[';
  Listener listener = listen_at((is_ipv6 ? "[" + host + "]" : host) + ":0", false,
                                "trainer " + std::to_string(state_->options.rank));
  state_->port =
      static_cast<std::uint16_t>(std::stoul(listener.endpoint.substr(listener.endpoint.rfind(':') + 1)));
  std::vector<AuthListener> auth_listeners;
  auth_listeners.push_back(
      {std::move(listener.socket), ps::purpose_of(ps::TransportKind::tcp), false,
       [state = state_.get()](SealedSocket accepted) { state->admit(std::move(accepted)); }});
  state_->authenticating_acceptor.emplace(std::move(auth_listeners), state_->options.access,
                                          state_->rejections);
}

GlobalShuffle::~GlobalShuffle() = default;

std::uint16_t GlobalShuffle::port() const noexcept {
  return state_->port;
}

void GlobalShuffle::set_endpoints(std::vector<std::string> endpoints) {
  if (endpoints.size() != state_->options.trainers)
    throw Error(ErrorKind::config, "global_shuffle: " + std::to_string(endpoints.size()) + " endpoints of " +
                                       std::to_string(state_->options.trainers) + " trainers");
  state_->endpoints = std::move(endpoints);
}

std::uint32_t GlobalShuffle::trainers() const noexcept {
  return state_->options.trainers;
}

std::uint32_t GlobalShuffle::rank() const noexcept {
  return state_->options.rank;
}

void GlobalShuffle::exchange(const std::function<std::vector<Parcel>()>& next,
                             const std::function<void(std::uint32_t, std::string_view)>& take) {
  State& state = *state_;
  state.connect();
  for (;;) {
    state.send_more(next);
    for (std::uint32_t trainer = 0; trainer < state.options.trainers; ++trainer)
      if (state.peers[trainer]) state.take_frames(trainer, take);
    if (state.is_done()) return;
    state.wait_for_bytes();
  }
}

}  // namespace fleetrun::runtime
