// The memory that the ranks of one host have in common.
// The group's rank 0 makes it and passes it by descriptor.
//
//   SharedHead, a SharedRank each, then for each rank its slots and its message buffers
//
// It is a memfd: it has no name that a crashed job could leave behind. Its size is sealed and its memory
// reserved before anybody uses it, so that no access can fail.
//
// A call is made of phases, numbered over the communicator's life. In a phase a rank writes its slot (phase %
// kSlots) and says so in its line of the same number. collective/cpu/shared_rounds.h says
// when a slot is free again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "collective/base/call.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::collective {

inline constexpr std::uint32_t kSlots = 4;
inline constexpr std::uint32_t kMessageBuffers = 4;

struct alignas(64) SharedLine {
  std::atomic<std::uint32_t> stamp;  // the phase's number + 1, cut to 32 bits: it has been written
  std::uint64_t extent;              // of a call's first phase, like tag: its steps as this rank sees them
  CallTag tag;
};
static_assert(sizeof(SharedLine) == 64);

struct SharedMessage {
  std::atomic<std::int32_t> to;
  CallTag tag;
};

/// Why the group has failed, as one of its ranks says it.
struct SharedFailure {
  std::int32_t kind;
  char what[1000];
  char hint[500];
};

struct SharedRank {
  SharedLine lines[kSlots];
  /// Waiting ranks sleep on `turn`, which grows when something
  /// of this rank's has changed and somebody sleeps.
  alignas(64) std::atomic<std::uint32_t> turn;
  std::atomic<std::uint32_t> sleepers;
  std::atomic<std::uint32_t> has_left;
  /// Its messages to others: written by it, taken by those they are for, in this order.
  alignas(64) std::atomic<std::uint32_t> written;
  std::atomic<std::uint32_t> taken;
  SharedMessage messages[kMessageBuffers];
  alignas(64) SharedFailure failure;
};

struct SharedHead {
  std::uint64_t magic, version, bytes;
  std::uint64_t slot_bytes, message_bytes;
  std::int32_t ranks;
  std::uint32_t spins;                               // there is a core for each rank
  alignas(64) std::atomic<std::uint32_t> failed_by;  // rank + 1 of the one whose failure counts; 0: none
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

struct SharedShape {
  int ranks = 1;
  std::size_t slot_bytes = 0;  // multiples of the page size
  std::size_t message_bytes = 0;
};

/// Threads: any; what lies in the memory says who may write it.
class SharedSegment {
 public:
  /// Throws: Error(host) when there is not enough memory.
  static SharedSegment make(const SharedShape& shape);
  /// What rank 0 has passed. Throws: Error(data) when it is not a sealed segment of this version.
  static SharedSegment attach(UniqueFd file);
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&&) = delete;
  ~SharedSegment();

  int file() const noexcept { return file_.value(); }
  /// After everybody has it: the mapping stays.
  void close_file() noexcept { file_.reset(); }
  SharedHead& head() const noexcept { return *reinterpret_cast<SharedHead*>(base_); }
  SharedRank& rank(int rank) const noexcept {
    return reinterpret_cast<SharedRank*>(base_ + kHeadBytes)[rank];
  }
  std::byte* slot(int rank, std::uint32_t slot) const noexcept {
    return slots_ + static_cast<std::size_t>(rank) * rank_bytes_ + slot * slot_bytes_;
  }
  std::byte* message(int rank, std::uint32_t buffer) const noexcept {
    return slots_ + static_cast<std::size_t>(rank) * rank_bytes_ + kSlots * slot_bytes_ +
           buffer * message_bytes_;
  }
  int ranks() const noexcept { return head().ranks; }
  std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  std::size_t message_bytes() const noexcept { return message_bytes_; }

 private:
  static constexpr std::size_t kHeadBytes = 256;
  static_assert(sizeof(SharedHead) <= kHeadBytes);
  static std::size_t front_bytes(int ranks);
  static std::size_t bytes_of(const SharedShape& shape);

  SharedSegment(UniqueFd file, std::size_t bytes);
  void place(const SharedShape& shape) noexcept;

  UniqueFd file_;
  std::size_t bytes_ = 0;
  std::byte* base_ = nullptr;
  std::byte* slots_ = nullptr;
  std::size_t slot_bytes_ = 0, message_bytes_ = 0, rank_bytes_ = 0;
};

}  // namespace fleetrun::collective
