// Which row a key has: buckets of one cache line, each with twelve {tag, row}. A tag is eight bits of the
// key's hash; the key itself lies in the row, so a lookup reads one line here
// and then the row that it wants anyway.
//
//   bucket  row u32[12] | tag u8[12], 0 for none | passed u32
//
// A key whose bucket is full lies in the next one that is not; every bucket that it passed counts it, so that
// a lookup ends at a bucket that nobody has passed, and removing leaves no marks behind. Full to seven
// eighths it takes 6.1 bytes a row, just after it grew 9.2.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/base/mix.h"

namespace fleetrun::ps {

/// Another constant than key_partition's: the keys of one server spread over all shards and buckets.
inline std::uint64_t row_hash(std::uint64_t key) noexcept {
  return mix(key ^ 0xd6e8feb86659fd93ULL);
}

/// Threads: one at a time.
class RowIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  std::uint64_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return buckets_.capacity() * sizeof(Bucket); }
  bool is_full() const noexcept { return 8 * (size_ + 1) > 7 * kPlaces * buckets_.size(); }

  void prefetch(std::uint64_t hash) const noexcept {
    if (!buckets_.empty()) __builtin_prefetch(&buckets_[home(hash)]);
  }
  /// The first row of the key's own bucket that may be its, to be fetched early; kNone when there is none.
  std::uint32_t guess(std::uint64_t hash) const noexcept {
    if (buckets_.empty()) return kNone;
    const Bucket& bucket = buckets_[home(hash)];
    Matches matches(bucket, tag_of(hash));
    // The lowest match is never one of the false ones.
    return matches.any() ? bucket.rows[matches.next()] : kNone;
  }
  /// The row of a key, or kNone. key_of(row) gives a row's key.
  template <class KeyOf>
  std::uint32_t find(std::uint64_t hash, std::uint64_t key, const KeyOf& key_of) const {
    if (buckets_.empty()) return kNone;
    const std::size_t first = home(hash);
    std::size_t at = first;
    do {
      const Bucket& bucket = buckets_[at];
      for (Matches matches(bucket, tag_of(hash)); matches.any();) {
        const std::size_t place = matches.next();
        if (bucket.tags[place] != 0 && key_of(bucket.rows[place]) == key) return bucket.rows[place];
      }
      if (bucket.passed == 0) return kNone;
      at = after(at);
    } while (at != first);
    return kNone;
  }
  /// Adds a row whose key is not there; is_full() must be false.
  void add(std::uint64_t hash, std::uint32_t row) noexcept;
  /// Removes a row that is there.
  void remove(std::uint64_t hash, std::uint32_t row) noexcept;
  /// Makes room for half as many rows again and forgets all of them: the caller adds them anew.
  void grow();

 private:
  static constexpr std::size_t kPlaces = 12;
  struct alignas(64) Bucket {
    std::uint32_t rows[kPlaces];
    std::uint8_t tags[kPlaces];
    std::uint32_t passed;
  };
  static_assert(sizeof(Bucket) == 64);

  // The places of a bucket whose tag is the wanted one; now and then one more, whose key then differs.
  class Matches {
   public:
    Matches(const Bucket& bucket, std::uint8_t tag) noexcept {
      std::uint64_t low = 0;
      std::uint32_t high = 0;
      std::memcpy(&low, bucket.tags, sizeof low);
      std::memcpy(&high, bucket.tags + sizeof low, sizeof high);
      low_ = zero_bytes(low ^ (0x0101010101010101u * tag));
      high_ = zero_bytes(high ^ (std::uint64_t{0x01010101u} * tag)) & 0x80808080u;
    }
    bool any() const noexcept { return (low_ | high_) != 0; }
    std::size_t next() noexcept {
      std::uint64_t& bits = low_ != 0 ? low_ : high_;
      const std::size_t place = static_cast<std::size_t>(std::countr_zero(bits)) / 8 + (low_ != 0 ? 0 : 8);
      bits &= bits - 1;
      return place;
    }

   private:
    static std::uint64_t zero_bytes(std::uint64_t word) noexcept {
      return (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
    }
    std::uint64_t low_;
    std::uint64_t high_;
  };

  // Bits 58 and up name the shard (ps/table/sparse_table.h).
  static std::uint8_t tag_of(std::uint64_t hash) noexcept {
    const auto tag = static_cast<std::uint8_t>(hash >> 48);
    return tag == 0 ? 1 : tag;
  }
  std::size_t home(std::uint64_t hash) const noexcept {
    return ((hash & 0xffffffff) * buckets_.size()) >> 32;
  }
  std::size_t after(std::size_t at) const noexcept { return at + 1 == buckets_.size() ? 0 : at + 1; }

  std::vector<Bucket> buckets_;
  std::uint64_t size_ = 0;
};

}  // namespace fleetrun::ps
