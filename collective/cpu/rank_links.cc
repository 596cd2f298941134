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
#include "runtime/secure/message_code.h"

namespace fleetrun::collective {
namespace {

using Clock = RankLinks::Clock;

constexpr std::size_t kMaxMessage = std::size_t{1} << 40;
/// A message that nobody has asked for yet takes memory as its bytes come, in steps of at least this many.
constexpr std::size_t kStep = std::size_t{64} << 10;
constexpr std::uint32_t kOfPayload = 0, kOfHeader = 1;  // what a code is for

struct Header {
  std::uint64_t slot = 0, bytes = 0;
};
using Code = MessageCoder::Code;

std::string_view key_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// On the wire: header, its code, payload, the code of header and payload; codes only between hosts. The
/// header is proven before it is believed.
struct Send {
  Header header;
  const std::byte* data;
  Code header_code, code;
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
  UniqueFd socket;
  std::optional<MessageCoder> to, from;
  std::uint64_t sent = 0, received = 0;  // messages
  std::deque<Send> sends;
  std::deque<Receive> receives;
  std::deque<Early> early;

  // The message that is being received.
  Header header;
  Code header_code, code;
  std::size_t at = 0;  // bytes of it that have come
  std::optional<Receive> into;
  std::optional<Early> aside;
};

Code code_of(const MessageCoder& coder, std::uint64_t number, const Header& header, const std::byte* data) {
  const std::array parts{std::as_bytes(std::span(&header, 1)), std::span(data, header.bytes)};
  return coder.of(kOfPayload, number, parts);
}

Code code_of_header(const MessageCoder& coder, std::uint64_t number, const Header& header) {
  const std::array parts{std::as_bytes(std::span(&header, 1))};
  return coder.of(kOfHeader, number, parts);
}

bool is_same(const Code& a, const Code& b) {
  return equal_in_constant_time({reinterpret_cast<const char*>(a.data()), a.size()},
                                {reinterpret_cast<const char*>(b.data()), b.size()});
}

}  // namespace

struct RankLinks::State {
  Place place;
  std::size_t code_bytes = 0;
  std::deque<Link> links;  // by rank
  UniqueFd woken;
  std::vector<pollfd> watched;
  std::mutex mutex;
  std::optional<Error> aborted;

  Link& link(int rank) { return links.at(static_cast<std::size_t>(rank)); }
  std::size_t head_bytes() const noexcept { return sizeof(Header) + code_bytes; }
  std::string name(int rank) const { return "group " + place.group + ": rank " + std::to_string(rank); }
  void throw_if_aborted();
  [[noreturn]] void lose(int rank, const std::string& why);
  void flush(int rank);
  void drain(int rank);
  ssize_t receive_some(Link& link);
  [[noreturn]] void refuse_changed(int rank) const;
  void begin(int rank);
  void complete(int rank);
};

RankLinks::RankLinks(Place place, std::vector<Proven> mesh, bool has_codes)
    : state_(std::make_unique<State>()) {
  state_->place = std::move(place);
  state_->code_bytes = has_codes ? sizeof(Code) : 0;
  state_->woken = UniqueFd(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", "connect ranks"));
  for (Proven& proven : mesh) {
    Link& link = state_->links.emplace_back();
    if (!proven.connection) continue;
    link.socket = std::move(proven.connection);
    if (!has_codes) continue;
    link.to.emplace(key_of(proven.keys.to_peer));
    link.from.emplace(key_of(proven.keys.from_peer));
  }
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
    const std::size_t payload = send.header.bytes;
    const std::size_t total = head_bytes() + payload + code_bytes;
    std::array<iovec, 4> parts;
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
    add(send.header_code.data(), code_bytes);
    add(send.data, payload);
    add(send.code.data(), code_bytes);
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t moved = ::sendmsg(link.socket.value(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (moved < 0)
      lose(rank, errno == EPIPE || errno == ECONNRESET ? "has ended its connection" : std::strerror(errno));
    send.sent += static_cast<std::size_t>(moved);
    if (send.sent < total) continue;
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

/// Into the header, the payload where it belongs, and the codes.
ssize_t RankLinks::State::receive_some(Link& link) {
  std::array<iovec, 2> parts;
  std::size_t count = 0;
  if (link.at < head_bytes()) {
    if (link.at < sizeof(Header))
      parts[count++] = {reinterpret_cast<std::byte*>(&link.header) + link.at, sizeof(Header) - link.at};
    const std::size_t of_code = std::max(link.at, sizeof(Header)) - sizeof(Header);
    if (code_bytes > of_code) parts[count++] = {link.header_code.data() + of_code, code_bytes - of_code};
  } else {
    const std::size_t come = link.at - head_bytes();  // of payload and code
    if (link.aside) make_room(link.aside->payload, come, link.header.bytes);
    const std::size_t room = link.aside ? link.aside->payload.size() : link.header.bytes;
    std::byte* data = link.into ? link.into->data : link.aside->payload.data();
    if (come < room) parts[count++] = {data + come, room - come};
    const std::size_t of_code = come < room ? 0 : come - room;
    if (room == link.header.bytes && code_bytes > of_code)
      parts[count++] = {link.code.data() + of_code, code_bytes - of_code};
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return ::recvmsg(link.socket.value(), &message, MSG_DONTWAIT);
}

void RankLinks::State::refuse_changed(int rank) const {
  throw Error(ErrorKind::data, name(rank) + ": a message did not arrive as it was sent",
              "the network changes bytes, or somebody else sends them");
}

/// The header is there: where does the payload belong?
void RankLinks::State::begin(int rank) {
  Link& link = this->link(rank);
  if (link.from && defends("proven headers") &&
      !is_same(code_of_header(*link.from, link.received, link.header), link.header_code))
    refuse_changed(rank);
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
  const std::byte* data = link.into ? link.into->data : link.aside->payload.data();
  if (link.from && defends("sealed messages of ranks") &&
      !is_same(code_of(*link.from, link.received, link.header, data), link.code))
    refuse_changed(rank);
  ++link.received;
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
  while (link.into || !link.receives.empty()) {
    const ssize_t count = receive_some(link);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count == 0 || (count < 0 && errno == ECONNRESET)) lose(rank, "has ended its connection");
    if (count < 0) lose(rank, std::string("cannot be reached: ") + std::strerror(errno));
    const bool had_header = link.at >= head_bytes();
    link.at += static_cast<std::size_t>(count);
    if (!had_header && link.at == head_bytes()) begin(rank);
    if (link.at >= head_bytes() && link.at == head_bytes() + link.header.bytes + code_bytes) complete(rank);
  }
}

void RankLinks::send(int to, std::uint64_t slot, const void* data, std::size_t bytes,
                     Completions& completions) {
  Link& link = state_->link(to);
  Send& send =
      link.sends.emplace_back(Send{{slot, bytes}, static_cast<const std::byte*>(data), {}, {}, &completions});
  if (link.to) {
    send.header_code = code_of_header(*link.to, link.sent, send.header);
    send.code = code_of(*link.to, link.sent, send.header, send.data);
  }
  ++link.sent;
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
  for (const Link& link : state.links) {
    const short events = static_cast<short>((link.into || !link.receives.empty() ? POLLIN : 0) |
                                            (link.sends.empty() ? 0 : POLLOUT));
    state.watched.push_back({events == 0 ? -1 : link.socket.value(), events, 0});
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  constexpr std::int64_t kMax = 3'600'000;
  const int ready = ::poll(state.watched.data(), state.watched.size(),
                           static_cast<int>(std::clamp<std::int64_t>(left, 0, kMax)));
  if (ready <= 0) return;
  if (state.watched[0].revents != 0) state.throw_if_aborted();
  for (std::size_t rank = 0; rank < state.links.size(); ++rank) {
    const short events = state.watched[rank + 1].revents;
    if (events == 0) continue;
    if ((events & POLLOUT) != 0) state.flush(static_cast<int>(rank));
    if ((events & ~POLLOUT) == 0) continue;
    if (state.links[rank].into || !state.links[rank].receives.empty())
      state.drain(static_cast<int>(rank));
    else
      state.flush(static_cast<int>(rank));  // finds out what is wrong
  }
}

int RankLinks::awaited() const noexcept {
  for (std::size_t rank = 0; rank < state_->links.size(); ++rank) {
    const Link& link = state_->links[rank];
    if (link.into || !link.receives.empty() || !link.sends.empty()) return static_cast<int>(rank);
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
    if (link.socket) ::shutdown(link.socket.value(), SHUT_RDWR);
}

}  // namespace fleetrun::collective
