// Hands out pieces of a range of offsets: one side's half of a shared segment. Its books are kept in this
// process, where the other side cannot spoil them.
//
// The lowest piece that fits is taken, so that a few pages are used over
// and over and the rest of a large range is never touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace fleetrun::ps {

/// Threads: one at a time.
class ShmArena {
 public:
  /// Pieces start at multiples of it: a cache line belongs to one message.
  static constexpr std::uint64_t kAlignment = 64;

  explicit ShmArena(std::uint64_t size) : size_(size) {}

  /// nullopt: no piece of that size is free.
  std::optional<std::uint64_t> allocate(std::uint64_t size);
  /// False: no piece that is in use starts there.
  bool free(std::uint64_t offset);

  bool is_empty() const noexcept { return pieces_.empty(); }
  std::uint64_t used() const noexcept { return used_; }
  /// All that was ever handed out lies below it.
  std::uint64_t touched() const noexcept { return touched_; }
  void forget_touched(std::uint64_t from) noexcept { touched_ = from; }

 private:
  std::uint64_t size_;
  std::uint64_t used_ = 0;
  std::uint64_t touched_ = 0;
  std::map<std::uint64_t, std::uint64_t> pieces_;  // offset, size
};

}  // namespace fleetrun::ps
