// Short texts and what was made of them: most values of a column are few and come again and again, and a
// float takes longer to print than to look up. One entry for each place of a table per column; a newcomer
// takes the place of who was there.
//
// Threads: one.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace fleetrun::dataset {

class TextCache {
 public:
  /// The longest text that has a place, and the longest result.
  static constexpr std::size_t kKeyBytes = 8;
  static constexpr std::size_t kResultBytes = 30;

  explicit TextCache(std::size_t columns) {
    constexpr std::size_t max_bytes = std::size_t{4} << 20;
    const std::size_t wanted = max_bytes / sizeof(Entry) / std::max<std::size_t>(columns, 1);
    const std::size_t size = std::bit_floor(std::clamp<std::size_t>(wanted, 16, 4096));
    shift_ = 64 - std::countr_zero(size);
    entries_.resize(size * columns);
  }

  struct Entry {
    std::uint64_t key = 0;
    std::uint8_t key_bytes = 0xFF;  // nothing is here
    std::uint8_t result_bytes = 0;
    char result[kResultBytes] = {};
  };

  /// The place of `text` in the table of `column`; taken says by what.
  /// 8 bytes from its beginning must be readable.
  struct Place {
    Entry& entry;
    std::uint64_t key;
    bool taken;
  };
  Place find(std::size_t column, std::string_view text) noexcept {
    std::uint64_t key;
    std::memcpy(&key, text.data(), sizeof key);
    if (text.size() < kKeyBytes) key &= (std::uint64_t{1} << (8 * text.size())) - 1;
    const std::size_t place = (key * 0x9E3779B97F4A7C15) >> shift_;
    Entry& entry = entries_[(column << (64 - shift_)) + place];
    return {entry, key, entry.key == key && entry.key_bytes == text.size()};
  }
  static void put(const Place& place, std::string_view text, std::string_view result) noexcept {
    if (result.size() > kResultBytes) return;
    place.entry.key = place.key;
    place.entry.key_bytes = static_cast<std::uint8_t>(text.size());
    place.entry.result_bytes = static_cast<std::uint8_t>(result.size());
    std::memcpy(place.entry.result, result.data(), result.size());
  }

 private:
  std::vector<Entry> entries_;
  int shift_ = 64;
};

}  // namespace fleetrun::dataset
