// send and receive between two ranks of a group in shared memory.
//
// A sender writes a message in pieces into its own buffers, in the order of its sends; the rank that a piece
// is for takes it. A send has ended when its last piece lies in a buffer: as long as messages fit into the
// buffers, two ranks may both send first and receive then.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collective/cpu/shared_group.h"

namespace fleetrun::collective {

/// Threads: one at a time.
class SharedMessages {
 public:
  explicit SharedMessages(SharedGroup& group);
  /// Throws: where the two ends differ, and the group's failure.
  void send(const Call& call);
  /// Whether send() would wait for nobody now.
  bool has_room(const Call& call) noexcept;
  void receive(const Call& call);

 private:
  using Deadline = std::optional<SharedGroup::Clock::time_point>;
  [[noreturn]] void miss(const Call& call);

  SharedGroup* group_;
  std::vector<std::uint64_t> sent_, received_;  // messages, by rank
};

}  // namespace fleetrun::collective
