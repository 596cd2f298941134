// A trainer's end of shared memory with a server: requests are made in it,
// answers are read in it, nothing is copied.
//
// One thread takes the answers. At most kMaxCalls requests are unanswered at once and together they fill no
// more than the segment: who wants to send more waits until one of them is answered, or gives up after
// ShmPatience::room. A server whose process shows no sign of life,
// because it is stopped, is gone for this link.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "ps/base/message.h"
#include "ps/base/outcome.h"
#include "ps/shm/segment.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

struct ShmAnswer {
  /// The answer's bytes lie in shared memory, until the message is destroyed.
  Outcome outcome;
  /// The server did not answer: it is gone, and so is the link.
  bool is_gone = false;
};

struct ShmPatience {
  /// For room to send; 0: for ever.
  std::chrono::milliseconds room{0};
  /// For a sign of life of the server's process.
  std::chrono::milliseconds life{15000};
};

/// Threads: all calls may be made from several threads at once.
class ShmLink {
 public:
  static constexpr std::size_t kMaxCalls = 1024;
  /// Called once, from the link's thread, from the sender's, or from the one that destroys the link.
  using Done = std::function<void(ShmAnswer)>;

  /// `server` is how errors call it: "server 0 at 127.0.0.1:6180".
  ShmLink(ShmSegment segment, UniqueFd socket, std::string server, ShmPatience patience = {});
  /// Calls that were not answered end as gone. What came from messages() or lies in answers stays valid.
  ~ShmLink();
  ShmLink(const ShmLink&) = delete;
  ShmLink& operator=(const ShmLink&) = delete;

  /// Memory that send() does not have to copy. Waits while the segment is full; from the heap once the link
  /// is gone. Throws (the source): Error(timeout) naming the server.
  MessageSource messages() const;
  /// `request` must not change or go away until `done` was called.
  /// Throws: Error(timeout) naming the server; nothing is sent then, and `done` not called.
  void send(std::span<const std::byte> request, Done done);

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the messages that lie in the segment
};

}  // namespace fleetrun::ps
