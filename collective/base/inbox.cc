#include "collective/base/inbox.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "runtime/base/error_copy.h"

namespace fleetrun::collective {
namespace {

struct Head {
  std::int64_t tag, size;
};
/// A message of 4 KiB is a front alone.
constexpr std::size_t kFrontBytes = sizeof(Head) + 4096, kHere = kFrontBytes - sizeof(Head);
/// So many messages are kept at most before somebody asks for them, of all sources.
constexpr std::size_t kAhead = 64;

void receive_from(Communicator& incoming, std::span<std::byte> bytes) {
  receive(incoming, {bytes.data(), bytes.size(), DataType::uint8}, 0);
}

}  // namespace

MessageParts parts_of(std::span<const std::byte> message, std::int64_t tag) {
  const Head head{tag, static_cast<std::int64_t>(message.size())};
  const std::size_t here = std::min(message.size(), kHere);
  MessageParts parts{std::vector<std::byte>(kFrontBytes), message.subspan(here)};
  std::memcpy(parts.front.data(), &head, sizeof head);
  if (here > 0) std::memcpy(parts.front.data() + sizeof head, message.data(), here);
  return parts;
}

Inbox::Posted Inbox::post(std::span<std::byte> bytes, std::optional<int> source, std::int64_t tag,
                          std::shared_ptr<void> owner) {
  const auto receive = std::make_shared<Receive>();
  receive->bytes = bytes;
  receive->source = source;
  receive->tag = tag;
  receive->owner = std::move(owner);
  const std::lock_guard lock(mutex_);
  const auto kept = std::ranges::find_if(
      kept_, [&](const Kept& each) { return each.tag == tag && receive->wants(each.source); });
  if (kept != kept_.end()) {
    hand_over(*receive, kept->source, kept->bytes);
    kept_.erase(kept);
  } else {
    posted_.push_back(receive);
    posted_changed_.notify_all();
  }
  return receive;
}

bool Inbox::wait(const Receive& receive, std::chrono::steady_clock::time_point until) {
  if (receive.has_ended.load(std::memory_order_acquire)) return true;
  std::unique_lock lock(mutex_);
  return ended_.wait_until(lock, until, [&] { return receive.has_ended.load(); });
}

bool Inbox::withdraw(const Posted& receive) {
  const std::lock_guard lock(mutex_);
  return posted_.remove(receive) > 0;
}

bool Inbox::claim(int source) {
  const std::lock_guard lock(mutex_);
  return served_.insert(source).second;
}

void Inbox::serve(int source, Communicator& incoming) noexcept {
  try {
    for (;;) take(source, incoming);
  } catch (const Error& error) {
    fail(source, error);
  } catch (const std::exception& error) {
    fail(source, Error(ErrorKind::host, error.what()));
  }
}

void Inbox::fail(int source, const Error& why) {
  std::list<Posted> failed;
  const std::lock_guard lock(mutex_);
  served_.erase(source);
  for (auto each = posted_.begin(); each != posted_.end();) {
    const auto next = std::next(each);
    if ((*each)->wants(source)) {
      end(**each, separate_copy(why));
      failed.splice(failed.end(), posted_, each);
    }
    each = next;
  }
}

void Inbox::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  posted_changed_.notify_all();
}

void Inbox::take(int source, Communicator& incoming) {
  std::array<std::byte, kFrontBytes> front;
  receive_from(incoming, front);
  Head head;
  std::memcpy(&head, front.data(), sizeof head);
  const auto size = static_cast<std::size_t>(head.size);
  const Posted receive = match(source, head.tag, size <= kHere);
  // A receive of another size fails, and the ones after it do not.
  std::unique_ptr<std::byte[]> own;
  if (!receive || receive->bytes.size() != size) own = std::make_unique_for_overwrite<std::byte[]>(size);
  const std::span bytes = own ? std::span(own.get(), size) : receive->bytes;
  const std::size_t here = std::min(size, kHere);
  if (here > 0) std::memcpy(bytes.data(), front.data() + sizeof head, here);
  if (size > here) {
    try {
      receive_from(incoming, bytes.subspan(here));
    } catch (const Error& error) {
      const std::lock_guard lock(mutex_);
      if (receive) end(*receive, separate_copy(error));
      throw;
    }
  }
  Posted taker = receive;
  const std::lock_guard lock(mutex_);
  if (!taker) taker = unpost_first(source, head.tag);
  if (taker)
    hand_over(*taker, source, bytes);
  else
    kept_.push_back({source, head.tag, std::move(own), bytes});
}

/// The receive that a message is for; none where it is to be kept.
Inbox::Posted Inbox::match(int source, std::int64_t tag, bool is_small) {
  std::unique_lock lock(mutex_);
  for (;;) {
    Posted receive = unpost_first(source, tag);
    if (receive || is_wanted(source) || (is_small && kept_.size() < kAhead)) return receive;
    expect_open();
    posted_changed_.wait(lock);
  }
}

Inbox::Posted Inbox::unpost_first(int source, std::int64_t tag) {
  const auto found = std::ranges::find_if(
      posted_, [&](const Posted& each) { return each->tag == tag && each->wants(source); });
  if (found == posted_.end()) return nullptr;
  Posted receive = std::move(*found);
  posted_.erase(found);
  return receive;
}

bool Inbox::is_wanted(int source) const {
  return std::ranges::any_of(posted_, [&](const Posted& each) { return each->wants(source); });
}

void Inbox::expect_open() const {
  if (is_closed_) throw Error(ErrorKind::network, name_ + " was let go");
}

void Inbox::hand_over(Receive& receive, int source, std::span<const std::byte> bytes) {
  receive.sender = source;
  if (receive.bytes.size() != bytes.size()) {
    return end(receive, Error(ErrorKind::config,
                              "rank " + std::to_string(source) + " sends " + std::to_string(bytes.size()) +
                                  " bytes with tag " + std::to_string(receive.tag) + ", and " +
                                  std::to_string(receive.bytes.size()) + " are received",
                              "send and receive tensors of one size"));
  }
  if (receive.bytes.data() != bytes.data()) std::ranges::copy(bytes, receive.bytes.begin());
  end(receive, std::nullopt);
}

void Inbox::end(Receive& receive, std::optional<Error> error) {
  receive.error = std::move(error);
  receive.has_ended.store(true, std::memory_order_release);
  ended_.notify_all();
}

}  // namespace fleetrun::collective
