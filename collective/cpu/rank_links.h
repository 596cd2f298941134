// Messages between the ranks of a group, over one connection for each pair: buffers are sent from where they
// are and received to where they belong. collective/cpu/gloo_context.h gives them to Gloo's algorithms.
//
//   message   u64 slot │ u64 n │ payload[n]         integers little-endian
//
// A slot says what a message is; a receive gets the first message of its slot. A message that is not awaited
// yet takes memory as its bytes come. What was changed, left out or comes from somebody else is noticed by
// the connection (runtime/connect/sealed_socket), except with --insecure.
//
// There is no thread: bytes move while somebody waits. So a rank that makes no calls receives nothing, and
// its peers wait for it when the kernel's buffers are full.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collective/base/communicator.h"
#include "runtime/base/error.h"
#include "runtime/connect/sealed_socket.h"

namespace fleetrun::collective {

/// How many of the sends or receives that were given it have ended.
struct Completions {
  std::size_t sends = 0, receives = 0;
};

/// Threads: one at a time; abort() any.
class RankLinks {
 public:
  using Clock = std::chrono::steady_clock;

  /// `mesh` as connect_mesh() gives it.
  RankLinks(Place place, std::vector<SealedSocket> mesh);
  ~RankLinks();
  RankLinks(const RankLinks&) = delete;
  RankLinks& operator=(const RankLinks&) = delete;

  const Place& place() const noexcept;
  /// Begins to send `bytes` bytes to another rank; they do not change until the send has ended.
  void send(int to, std::uint64_t slot, const void* data, std::size_t bytes, Completions& completions);
  void receive(int from, std::uint64_t slot, void* data, std::size_t bytes, Completions& completions);
  /// Forgets about these sends and receives. What is within a message then fails the links.
  void withdraw(const Completions& completions) noexcept;

  /// Moves bytes once, after waiting for some that can be moved; returns at the deadline, too.
  /// Throws: Error(network) naming the rank whose connection has ended, Error(data) for a message that is not
  /// what was sent, and what abort() was given. From then on it throws that.
  void progress(Clock::time_point deadline);
  /// The lowest rank that something is awaited from, or that does not take what is sent to it; -1: none.
  int awaited() const noexcept;

  /// Ends what is under way and all that comes. `why`: nothing else counts. Does not wait.
  void abort(const Error& why) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::collective
