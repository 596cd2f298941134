// Messages with tags that other ranks send to this one, and the receives that wait for them.
//
// A message is a front of fixed size, with its tag, its size and its first bytes, and the rest of its bytes.
// A thread for each source reads fronts and looks for the first receive that takes the message. One that none
// has asked for is kept when it is small, or when a receive waits for a later one; else it stays with its
// sender till then.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collective/base/communicator.h"

namespace fleetrun::collective {

/// What a message begins with: `front` is sent as so many bytes, and then `rest`, unless it is empty.
struct MessageParts {
  std::vector<std::byte> front;
  std::span<const std::byte> rest;  // of the message
};
MessageParts parts_of(std::span<const std::byte> message, std::int64_t tag);

/// Threads: any.
class Inbox {
 public:
  /// A receive that was posted.
  struct Receive {
    std::span<std::byte> bytes;
    std::optional<int> source;  // none: any
    std::int64_t tag = 0;
    std::shared_ptr<void> owner;  // keeps the bytes; let go of without a lock
    std::atomic<bool> has_ended = false;
    // What follows counts once it has ended.
    int sender = -1;
    std::optional<Error> error;

    bool wants(int from) const noexcept { return source.value_or(from) == from; }
  };
  using Posted = std::shared_ptr<Receive>;

  /// `name`: of the group, for messages.
  explicit Inbox(std::string name) : name_(std::move(name)) {}

  /// Takes the next message of `source`, none: of any rank, with this tag. `owner` keeps the bytes
  /// until it has ended, or was withdrawn.
  Posted post(std::span<std::byte> bytes, std::optional<int> source, std::int64_t tag,
              std::shared_ptr<void> owner = nullptr);
  /// Whether it has ended before this.
  bool wait(const Receive& receive, std::chrono::steady_clock::time_point until);
  /// Whether nothing has come for it, and nothing will.
  bool withdraw(const Posted& receive);

  /// Whether nobody serves the source yet: the caller does from now on, by serve() or fail().
  bool claim(int source);
  /// Reads what rank 0 of `incoming`, the source, sends to its rank 1, until it fails or this is closed.
  void serve(int source, Communicator& incoming) noexcept;
  /// Receives from it that wait fail. It can be claimed again.
  void fail(int source, const Error& why);
  /// No more messages. Who serves returns once its communicator has been aborted.
  void close();

 private:
  struct Kept {
    int source;
    std::int64_t tag;
    std::unique_ptr<std::byte[]> data;
    std::span<const std::byte> bytes;
  };

  void take(int source, Communicator& incoming);
  Posted match(int source, std::int64_t tag, bool is_small);
  Posted unpost_first(int source, std::int64_t tag);
  bool is_wanted(int source) const;
  void expect_open() const;
  void hand_over(Receive& receive, int source, std::span<const std::byte> bytes);
  void end(Receive& receive, std::optional<Error> error);

  const std::string name_;
  std::mutex mutex_;  // of what follows
  std::condition_variable posted_changed_, ended_;
  std::list<Posted> posted_;
  std::list<Kept> kept_;
  std::set<int> served_;
  bool is_closed_ = false;
};

}  // namespace fleetrun::collective
