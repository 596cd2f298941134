// What a server answers to a trainer's hello (ps/base/wire.h): where the trainer goes on, in which epochs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ps/base/message.h"

namespace fleetrun::ps::wire {

/// How a trainer comes. Its process is the one that it was, and what it did before its goodbye is nothing
/// to go on after:
inline constexpr std::uint32_t kBeginsAnew = 1;
/// What its epochs are over is kept; where trainers do not wait for each other, their steps are counted.
inline constexpr std::uint32_t kCountsEpochs = 2;

/// What it finds (HelloAnswer::finds). Another process of this trainer has pushed, and nobody knows how far
/// it was in its data:
inline constexpr std::uint32_t kForgotten = 1;
/// The last epoch that was counted was not completed.
inline constexpr std::uint32_t kCut = 2;
/// The server was to go on from an earlier run's checkpoint, and did, or had none: all do, or none does.
inline constexpr std::uint32_t kResumed = 4, kBeganEmpty = 8;

struct HelloAnswer {
  std::uint32_t late = 0;
  std::uint32_t finds = 0;  // kForgotten, kCut, kResumed, kBeganEmpty
  /// A random number that a server keeps when it is started again (ps/server/server_durable.cc).
  std::uint64_t server = 0;
  /// All changes of the incarnation before this one have been applied.
  std::uint64_t next_change = 1;
  /// Its complete barriers, sums and epochs; those of the process before it where this one goes on for that.
  std::array<std::uint64_t, 3> rounds = {};
  /// Digest of the manifest that the server was started from; 0 when it was from none.
  std::uint64_t started_from = 0;

  bool operator==(const HelloAnswer&) const = default;
};
/// An epoch as the trainer began it.
struct EpochMark {
  /// Tells what it is over apart from what other epochs are over, and not 0.
  std::uint64_t data = 0;
  /// Complete by then: the trainer's barriers and sums.
  std::uint64_t barriers = 0, sums = 0;

  bool operator==(const EpochMark&) const = default;
};
struct Greeting : HelloAnswer {
  std::vector<std::uint64_t> steps = {};  // in its last epoch, by thread
  std::vector<EpochMark> epochs = {};     // where they are kept
};
struct BeginEpoch {
  std::uint32_t threads = 0;
  std::uint32_t unused = 0;
  EpochMark mark = {};
};

/// The answer to a hello, and back. Throws: Error(data).
Message greet(const Greeting& greeting);
Greeting read_greeting(Reader answer);

}  // namespace fleetrun::ps::wire
