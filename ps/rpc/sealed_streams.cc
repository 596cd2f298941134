// Each thread has an epoll with the two sockets of its connections, edge-triggered: a socket is heard of once
// when it changes, and is then read and written until the kernel has no more.
#include "ps/rpc/sealed_streams.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr int kPiecesPerTurn = 16;            // then the others have their turn
constexpr std::chrono::seconds kFarewell{1};  // for what is left, at the end
constexpr std::uint64_t kWake = 0;            // of the eventfd; connections count from 1

/// One connection and gRPC's pair of it.
struct Stream {
  SealedSocket network;
  UniqueFd local;
  SealedStreams::Refused refused;
  std::string to_local;  // received, and not taken yet
  bool network_is_over = false, local_is_over = false;

  /// Hands out what has come. False: nothing moves at present.
  bool receive(std::span<std::byte> piece) {
    if (to_local.empty() && !network_is_over) {
      const ssize_t count = network.receive(piece);
      network_is_over = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
      if (count > 0)
        to_local.assign(reinterpret_cast<const char*>(piece.data()), static_cast<std::size_t>(count));
    }
    if (to_local.empty()) return false;
    const ssize_t count =
        ::send(local.value(), to_local.data(), to_local.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN && errno != EINTR) local_is_over = true;
    if (count <= 0) return false;
    to_local.erase(0, static_cast<std::size_t>(count));
    if (to_local.empty()) std::string().swap(to_local);
    return true;
  }

  /// Sends what gRPC says. False: nothing moves at present.
  bool send(std::span<std::byte> piece) {
    if (!network.flush()) network_is_over = true;
    if (network.has_output() || local_is_over || network_is_over) return false;
    const ssize_t count = ::recv(local.value(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) local_is_over = true;
    if (count <= 0) return false;
    const iovec part{piece.data(), static_cast<std::size_t>(count)};
    network_is_over = network.send(std::span(&part, 1)) != count;
    return true;
  }

  bool is_over() const {
    return (network_is_over && to_local.empty()) ||
           (local_is_over && (network_is_over || !network.has_output()));
  }
};

}  // namespace

class SealedStreams::Worker {
 public:
  void add(SealedSocket network, UniqueFd local, Refused refused) {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) begin();
    const std::uint64_t id = ++last_id_;
    const std::array sockets{network.fd(), local.value()};
    Stream& stream = streams_[id];
    stream.network = std::move(network);
    stream.local = std::move(local);
    stream.refused = std::move(refused);
    for (const int socket : sockets) watch(socket, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, id);
  }

  ~Worker() {
    if (!thread_.joinable()) return;
    is_stopping_ = true;
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake_.value(), &one, sizeof one));
    thread_.join();
  }

 private:
  void begin() {
    epoll_.reset(check_errno(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1", "seal connections"));
    wake_.reset(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "seal connections"));
    watch(wake_.value(), EPOLLIN, kWake);
    thread_ = std::thread([this] { run(); });
  }

  void watch(int socket, std::uint32_t events, std::uint64_t id) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    check_errno(::epoll_ctl(epoll_.value(), EPOLL_CTL_ADD, socket, &event), "epoll_ctl", "seal connections");
  }

  void run() {
    std::vector<std::byte> piece(kPiece);
    std::array<epoll_event, 64> events;
    std::set<std::uint64_t> ready;  // there is more to move
    std::optional<Clock::time_point> last;
    for (;;) {
      if (is_stopping_ && !last) last = Clock::now() + kFarewell;
      if (last && (Clock::now() >= *last || !has_streams())) return;
      const auto left =
          last ? std::chrono::ceil<std::chrono::milliseconds>(*last - Clock::now()).count() : -1;
      const int count = ::epoll_wait(epoll_.value(), events.data(), static_cast<int>(events.size()),
                                     ready.empty() ? static_cast<int>(left) : 0);
      if (count < 0 && errno != EINTR) return;
      for (int i = 0; i < count; ++i) ready.insert(events[static_cast<std::size_t>(i)].data.u64);
      if (ready.erase(kWake) > 0) ::epoll_ctl(epoll_.value(), EPOLL_CTL_DEL, wake_.value(), nullptr);
      std::erase_if(ready, [&](std::uint64_t id) { return !has_more(id, piece); });
    }
  }

  bool has_streams() {
    const std::lock_guard lock(mutex_);
    return !streams_.empty();
  }

  /// Moves bytes of a connection; whether it is to be asked again without being told.
  bool has_more(std::uint64_t id, std::span<std::byte> piece) {
    Stream* stream = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto found = streams_.find(id);
      if (found == streams_.end()) return false;
      stream = &found->second;  // only this thread takes it away
    }
    bool moves = true;
    try {
      for (int i = 0; moves && !stream->is_over() && i < kPiecesPerTurn; ++i) {
        const bool receives = stream->receive(piece), sends = stream->send(piece);
        moves = receives || sends;
      }
    } catch (const Error& error) {
      if (stream->refused) stream->refused(error.what());
      stream->network_is_over = true;
    }
    if (!stream->is_over()) return moves;
    ::shutdown(stream->network.fd(), SHUT_RDWR);  // a child that was forked may have it, too
    ::shutdown(stream->local.value(), SHUT_RDWR);
    const std::lock_guard lock(mutex_);
    streams_.erase(id);
    return false;
  }

  UniqueFd epoll_, wake_;
  std::mutex mutex_;
  std::map<std::uint64_t, Stream> streams_;
  std::uint64_t last_id_ = kWake;
  std::atomic<bool> is_stopping_ = false;
  std::thread thread_;
};

namespace {

std::size_t worker_count() {
  return std::clamp(std::thread::hardware_concurrency() / 2, 1u, 4u);
}

}  // namespace

SealedStreams::SealedStreams() : workers_(new Worker[worker_count()]) {}
SealedStreams::~SealedStreams() = default;

UniqueFd SealedStreams::join(SealedSocket socket, std::string& early, Refused refused) {
  if (!socket.is_sealed()) return socket.take_plain(early);
  early.clear();
  std::array<int, 2> ends{};
  check_errno(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), "socketpair",
              "seal a connection");
  UniqueFd theirs(ends[0]);
  socket.end_when_silent();
  workers_[next_++ % worker_count()].add(std::move(socket), UniqueFd(ends[1]), std::move(refused));
  return theirs;
}

}  // namespace fleetrun::ps
