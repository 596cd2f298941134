#include "collective/cpu/shared_messages.h"

#include <algorithm>
#include <cstring>

namespace fleetrun::collective {
namespace {

/// At least one, also of a message without elements.
std::size_t pieces_of(const Call& call, std::size_t max) {
  return std::max<std::size_t>(1, (call.bytes() + max - 1) / max);
}

}  // namespace

SharedMessages::SharedMessages(SharedGroup& group)
    : group_(&group),
      sent_(static_cast<std::size_t>(group.size())),
      received_(static_cast<std::size_t>(group.size())) {}

bool SharedMessages::has_room(const Call& call) noexcept {
  const SharedRank& words = group_->of(group_->rank());
  const std::uint32_t used = words.written.load(std::memory_order_relaxed) - words.taken.load();
  return pieces_of(call, group_->segment().message_bytes()) <= kMessageBuffers - used;
}

void SharedMessages::send(const Call& call) {
  const int own = group_->rank();
  SharedRank& words = group_->of(own);
  const std::size_t max = group_->segment().message_bytes(), pieces = pieces_of(call, max);
  const CallTag tag = tag_of(call, sent_[static_cast<std::size_t>(call.root)]++);
  const auto* from = static_cast<const std::byte*>(call.input);
  Deadline deadline;
  group_->throw_if_failed();
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const std::uint32_t written = words.written.load(std::memory_order_relaxed);
    const auto has_room = [&] {
      return written - words.taken.load(std::memory_order_acquire) < kMessageBuffers;
    };
    if (!group_->wait(own, call.root, deadline, has_room)) miss(call);
    const std::uint32_t buffer = written % kMessageBuffers;
    words.messages[buffer].to.store(call.root, std::memory_order_relaxed);
    words.messages[buffer].tag = tag;
    const std::size_t at = piece * max, bytes = std::min(max, call.bytes() - at);
    if (bytes > 0) std::memcpy(group_->segment().message(own, buffer), from + at, bytes);
    words.written.store(written + 1);
    group_->wake(own);
  }
}

void SharedMessages::receive(const Call& call) {
  const int own = group_->rank(), other = call.root;
  SharedRank& words = group_->of(other);
  const std::size_t max = group_->segment().message_bytes(), pieces = pieces_of(call, max);
  const CallTag tag = tag_of(call, received_[static_cast<std::size_t>(other)]++);
  auto* to = static_cast<std::byte*>(call.output);
  Deadline deadline;
  group_->throw_if_failed();
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const auto is_next = [&] {
      const std::uint32_t taken = words.taken.load(std::memory_order_acquire);
      if (words.written.load(std::memory_order_acquire) == taken) return false;
      // Another rank may take this piece meanwhile, and the sender write the next one there.
      return words.messages[taken % kMessageBuffers].to.load(std::memory_order_acquire) == own &&
             words.taken.load(std::memory_order_acquire) == taken;
    };
    // A thread that reads for others would keep their cores, and a message may be long in coming.
    if (!(piece == 0 ? group_->wait_long(other, other, deadline, is_next)
                     : group_->wait(other, other, deadline, is_next)))
      miss(call);
    const std::uint32_t taken = words.taken.load(std::memory_order_relaxed), buffer = taken % kMessageBuffers;
    const CallTag theirs = words.messages[buffer].tag;
    if (theirs != tag) {
      const std::string sender = "rank " + std::to_string(other), receiver = "rank " + std::to_string(own);
      group_->fail_and_throw(Error(ErrorKind::config, group_->prefix() + sender + " sends " + receiver +
                                                          ": " + to_string(theirs) + "; " + receiver +
                                                          " expects: " + to_string(tag)));
    }
    const std::size_t at = piece * max, bytes = std::min(max, call.bytes() - at);
    if (bytes > 0) std::memcpy(to + at, group_->segment().message(other, buffer), bytes);
    words.taken.store(taken + 1);
    group_->wake(other);
  }
}

void SharedMessages::miss(const Call& call) {
  const std::string calls = "rank " + std::to_string(group_->rank()) + " calls " + to_string(call);
  if (group_->has_left(call.root)) {
    group_->fail_and_throw(Error(
        ErrorKind::network, group_->prefix() + "rank " + std::to_string(call.root) + " has left; " + calls));
  }
  group_->fail_and_throw(Error(
      ErrorKind::timeout, group_->prefix() + "rank " + std::to_string(call.root) + " did not come within " +
                              std::to_string(group_->call_within().count()) + " ms; " + calls));
}

}  // namespace fleetrun::collective
