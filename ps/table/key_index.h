// Distinct keys, numbered from 0 in the order in which they came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fleetrun::ps {

/// Open addressing over 32-bit numbers; the keys themselves lie in their order. Threads: one at a time.
class KeyIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  std::size_t size() const noexcept { return keys_.size(); }
  std::span<const std::uint64_t> keys() const noexcept { return keys_; }
  /// The number of `key`, or kNone.
  std::uint32_t find(std::uint64_t key) const noexcept;
  /// The number of `key`, which gets the next one when it is new. Throws: Error(data) for 2^32 - 1 keys.
  std::uint32_t add(std::uint64_t key);
  /// Hands the keys over and is empty then.
  std::vector<std::uint64_t> take();

 private:
  std::size_t slot_of(std::uint64_t key) const noexcept;
  void grow();

  std::vector<std::uint64_t> keys_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace fleetrun::ps
