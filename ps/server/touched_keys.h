// Geo mode, the server's side: for each trainer the keys that others have pushed since it last asked.
//
//   push of trainer t      every other trainer's set of the table gets the push's keys,
//                          after they were applied
//   ask(trainer, number)   hands out what has gathered, in portions; an answer that got lost is asked for
//                          again with the same number, and names the same keys
//
// A trainer's sets exist from its first ask on, and are forgotten when it comes back as another incarnation,
// when it says goodbye, and when the tables are replaced by a load. Answers carry the recorder's generation:
// a trainer that sees it change (another server process,
// loaded tables) cannot know what it has missed, and pulls all of its rows anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ps/table/key_index.h"

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once.
class TouchedKeys {
 public:
  /// By table id.
  using Keys = std::map<std::uint32_t, std::vector<std::uint64_t>>;
  struct Asker {
    std::uint32_t trainer = 0;
    std::uint64_t incarnation = 0;
    /// Counts the trainer's asks from 1; the same for one that is repeated.
    std::uint64_t number = 0;
  };
  struct Answer {
    std::uint64_t generation = 0;
    Keys keys;
    /// There are more: ask again.
    bool more = false;
  };

  TouchedKeys();

  void record(std::uint32_t trainer, std::uint32_t table, std::span<const std::uint64_t> keys);
  /// `max` keys at most.
  Answer ask(const Asker& asker, std::size_t max);
  void forget(std::uint32_t trainer);
  /// The tables are others now.
  void restart();

 private:
  struct Trainer {
    std::mutex mutex;  // guards what follows
    std::uint64_t incarnation = 0;
    std::uint64_t number = 0;
    std::map<std::uint32_t, KeyIndex> touched;
    /// Taken out of `touched`, not yet handed out.
    Keys waiting;
    /// What the answer `number` named.
    Answer last;
  };
  static bool hand_out(Trainer& trainer, std::size_t max, Keys& out);

  mutable std::mutex mutex_;  // guards what follows
  std::uint64_t generation_;
  // Owned by the map and by the calls that are using them.
  std::map<std::uint32_t, std::shared_ptr<Trainer>> trainers_;
};

}  // namespace fleetrun::ps
