#include "collective/cpu/rank_links.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "collective/base/call_thread.h"
#include "runtime/base/defences.h"
#include "runtime/base/error_copy.h"

namespace fleetrun::collective {
namespace {

using Clock = RankLinks::Clock;

constexpr std::size_t kMaxMessage = std::size_t{1} << 40;
/// A message that nobody has asked for yet takes memory as its bytes come, in steps of at least this many.
constexpr std::size_t kStep = std::size_t{64} << 10;

struct Header {
  std::uint64_t slot = 0, bytes = 0;
};

struct Send {
  Header header;
  const std::byte* data;
  Completions* completions;
  std::size_t sent = 0;  // of all of it
};

struct Receive {
  std::uint64_t slot;
  std::byte* data;
  std::size_t bytes;
  Completions* completions;
};

/// A message that came before it was asked for.
struct Early {
  std::uint64_t slot;
  std::vector<std::byte> payload;
};

/// One other rank.
struct Link {
  SealedSocket socket;
  std::deque<Send> sends;
  std::deque<Receive> receives;
  std::deque<Early> early;

  // The message that is being received.
  Header header;
  std::size_t at = 0;  // bytes of it that have come
  std::optional<Receive> into;
  std::optional<Early> aside;

  /// Whether something is expected of the other rank.
  bool is_awaited() const noexcept { return into || !receives.empty(); }
};

}  // namespace

struct RankLinks::State {
  Place place;
  std::deque<Link> links;  // by rank
  UniqueFd woken;
  std::vector<pollfd> watched;
  std::mutex mutex;
  std::optional<Error> aborted;

  Link& link(int rank) { return links.at(static_cast<std::size_t>(rank)); }
  std::string name(int rank) const { return "group " + place.group + ": rank " + std::to_string(rank); }
  void throw_if_aborted();
  [[noreturn]] void lose(int rank, const std::string& why);
  void flush(int rank);
  void drain(int rank);
  ssize_t receive_some(Link& link);
  void begin(int rank);
  void complete(int rank);
};

RankLinks::RankLinks(Place place, std::vector<SealedSocket> mesh) : state_(std::make_unique<State>()) {
  state_->place = std::move(place);
  state_->woken = UniqueFd(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "connect ranks"));
  for (SealedSocket& socket : mesh) state_->links.emplace_back().socket = std::move(socket);
}

RankLinks::~RankLinks() = default;

const Place& RankLinks::place() const noexcept {
  return state_->place;
}

void RankLinks::State::throw_if_aborted() {
  const std::lock_guard lock(mutex);
  if (aborted) throw separate_copy(*aborted);
}

/// The connection has ended: in a moment it will be known why,
/// since who watches the job's processes aborts this.
void RankLinks::State::lose(int rank, const std::string& why) {
  pollfd told{woken.value(), POLLIN, 0};
  ::poll(&told, 1, static_cast<int>(kForTheCause.count()));
  throw_if_aborted();
  throw Error(ErrorKind::network, name(rank) + " " + why, "look at its log");
}

/// Sends as much as the kernel takes.
void RankLinks::State::flush(int rank) {
  Link& link = this->link(rank);
  while (!link.sends.empty()) {
    Send& send = link.sends.front();
    const std::size_t total = sizeof(Header) + send.header.bytes;
    std::array<iovec, 2> parts;
    std::size_t count = 0, skip = send.sent;
    const auto add = [&](const void* data, std::size_t size) {
      if (skip >= size) {
        skip -= size;
      } else {
        parts[count++] = {const_cast<std::byte*>(static_cast<const std::byte*>(data)) + skip, size - skip};
        skip = 0;
      }
    };
    add(&send.header, sizeof(Header));
    add(send.data, send.header.bytes);
    const ssize_t moved =
        send.sent < total ? link.socket.send(std::span(parts.data(), count)) : (link.socket.flush() ? 0 : -1);
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (moved < 0)
      lose(rank, errno == EPIPE || errno == ECONNRESET ? "has ended its connection" : std::strerror(errno));
    send.sent += static_cast<std::size_t>(moved);
    if (send.sent < total) continue;
    if (link.socket.has_output()) return;  // nobody would send it once this send had ended
    if (send.completions) ++send.completions->sends;
    link.sends.pop_front();
  }
}

/// Room for more of a payload of `bytes`, of which `come` are there: twice as much, whatever it says.
void make_room(std::vector<std::byte>& payload, std::size_t come, std::size_t bytes) {
  if (come >= payload.size() && payload.size() < bytes)
    payload.resize(defends("memory as bytes come") ? std::min(bytes, std::max(2 * payload.size(), kStep))
                                                   : bytes);
}

/// Into the header, or the payload where it belongs. As SealedSocket::receive().
ssize_t RankLinks::State::receive_some(Link& link) {
  if (link.at < sizeof(Header))
    return link.socket.receive(std::as_writable_bytes(std::span(&link.header, 1)).subspan(link.at));
  const std::size_t come = link.at - sizeof(Header);
  if (link.aside) make_room(link.aside->payload, come, link.header.bytes);
  std::byte* data = link.into ? link.into->data : link.aside->payload.data();
  const std::size_t room = link.aside ? link.aside->payload.size() : link.header.bytes;
  return link.socket.receive({data + come, room - come});
}

/// The header is there: where does the payload belong?
void RankLinks::State::begin(int rank) {
  Link& link = this->link(rank);
  const auto found = std::find_if(link.receives.begin(), link.receives.end(),
                                  [&](const Receive& receive) { return receive.slot == link.header.slot; });
  if (found == link.receives.end()) {
    if (link.header.bytes > kMaxMessage)
      throw Error(ErrorKind::data, name(rank) + " sent what no rank sends");
    link.aside = Early{link.header.slot, {}};
    return;
  }
  if (found->bytes != link.header.bytes)
    throw Error(ErrorKind::data, name(rank) + " sent " + std::to_string(link.header.bytes) + " bytes where " +
                                     std::to_string(found->bytes) + " were expected");
  link.into = *found;
  link.receives.erase(found);
}

void RankLinks::State::complete(int rank) {
  Link& link = this->link(rank);
  if (link.into && link.into->completions) ++link.into->completions->receives;
  if (link.aside) link.early.push_back(std::move(*link.aside));
  link.into.reset();
  link.aside.reset();
  link.header = {};
  link.at = 0;
}

/// Receives what is there, as long as something is expected of this rank.
void RankLinks::State::drain(int rank) {
  Link& link = this->link(rank);
  while (link.is_awaited()) {
    ssize_t count = 0;
    try {
      count = receive_some(link);
    } catch (const Error& error) {
      throw Error(error.kind(), name(rank) + ": " + error.what(), error.hint());
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count == 0 || (count < 0 && errno == ECONNRESET)) lose(rank, "has ended its connection");
    if (count < 0) lose(rank, std::string("cannot be reached: ") + std::strerror(errno));
    const bool had_header = link.at >= sizeof(Header);
    link.at += static_cast<std::size_t>(count);
    if (!had_header && link.at == sizeof(Header)) begin(rank);
    if (link.at >= sizeof(Header) && link.at == sizeof(Header) + link.header.bytes) complete(rank);
  }
}

void RankLinks::send(int to, std::uint64_t slot, const void* data, std::size_t bytes,
                     Completions& completions) {
  state_->link(to).sends.push_back({{slot, bytes}, static_cast<const std::byte*>(data), &completions});
  state_->throw_if_aborted();
  state_->flush(to);
}

void RankLinks::receive(int from, std::uint64_t slot, void* data, std::size_t bytes,
                        Completions& completions) {
  Link& link = state_->link(from);
  const Receive receive{slot, static_cast<std::byte*>(data), bytes, &completions};
  const auto found = std::find_if(link.early.begin(), link.early.end(),
                                  [slot](const Early& early) { return early.slot == slot; });
  if (found == link.early.end()) {
    link.receives.push_back(receive);
    return;
  }
  if (found->payload.size() != bytes)
    throw Error(ErrorKind::data, state_->name(from) + " sent " + std::to_string(found->payload.size()) +
                                     " bytes where " + std::to_string(bytes) + " were expected");
  if (bytes > 0) std::memcpy(receive.data, found->payload.data(), bytes);
  link.early.erase(found);
  ++completions.receives;
}

void RankLinks::withdraw(const Completions& completions) noexcept {
  bool is_broken = false;
  for (Link& link : state_->links) {
    is_broken = is_broken || (link.into && link.into->completions == &completions);
    for (const Send& send : link.sends) is_broken = is_broken || send.completions == &completions;
    std::erase_if(link.receives, [&](const Receive& receive) { return receive.completions == &completions; });
  }
  if (!is_broken) return;
  abort(Error(ErrorKind::network, "group " + state_->place.group + ": a call was given up within a message"));
  for (Link& link : state_->links) {
    link.sends.clear();
    link.into.reset();
  }
}

void RankLinks::progress(Clock::time_point deadline) {
  State& state = *state_;
  state.watched.assign({{state.woken.value(), POLLIN, 0}});
  bool has_input = false;
  for (const Link& link : state.links) {
    const short events =
        static_cast<short>((link.is_awaited() ? POLLIN : 0) | (link.sends.empty() ? 0 : POLLOUT));
    state.watched.push_back({events == 0 ? -1 : link.socket.fd(), events, 0});
    has_input = has_input || (link.is_awaited() && link.socket.has_input());
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  constexpr std::int64_t kMax = 3'600'000;
  const int ready = ::poll(state.watched.data(), state.watched.size(),
                           has_input ? 0 : static_cast<int>(std::clamp<std::int64_t>(left, 0, kMax)));
  if (ready <= 0 && !has_input) return;
  if (state.watched[0].revents != 0) state.throw_if_aborted();
  for (std::size_t rank = 0; rank < state.links.size(); ++rank) {
    const Link& link = state.links[rank];
    const short events = state.watched[rank + 1].revents;
    if ((events & POLLOUT) != 0) state.flush(static_cast<int>(rank));
    if ((events & ~POLLOUT) == 0 && !(link.is_awaited() && link.socket.has_input())) continue;
    if (link.is_awaited())
      state.drain(static_cast<int>(rank));
    else
      state.flush(static_cast<int>(rank));  // finds out what is wrong
  }
}

int RankLinks::awaited() const noexcept {
  for (std::size_t rank = 0; rank < state_->links.size(); ++rank) {
    const Link& link = state_->links[rank];
    if (link.is_awaited() || !link.sends.empty()) return static_cast<int>(rank);
  }
  return -1;
}

void RankLinks::abort(const Error& why) noexcept {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->aborted) state_->aborted = separate_copy(why);
  }
  const std::uint64_t one = 1;
  static_cast<void>(!::write(state_->woken.value(), &one, sizeof one));
  // The others find the connections ended, also where nobody tells them.
  for (const Link& link : state_->links)
    if (link.socket) ::shutdown(link.socket.fd(), SHUT_RDWR);
}

}  // namespace fleetrun::collective
