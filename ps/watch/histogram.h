// How long things took, counted without locks and with a bounded error: 32 buckets between each power of two
// and the next, so that a quantile read from them is never below the true one and at most 1/32 above it.
//
//   value   0 … 31 ns   32 … 63 ns   64 … 127 ns   …        up to 2^40 ns (18 minutes),
//                                                           later ones count there
//   bucket  1 ns wide   1 ns         2 ns          …
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace fleetrun::ps {

/// What a histogram held at one moment: the buckets that are not empty,
/// as {highest value in it, how many}, rising.
struct HistogramCounts {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets;
  std::uint64_t sum = 0;      // of the values
  std::uint64_t highest = 0;  // of them

  std::uint64_t count() const noexcept;
  /// The value that a share `q` of all is not above; 0 where there are none.
  std::uint64_t quantile(double q) const noexcept;
};

/// Threads: all calls may be made from several threads at once; add() is a few relaxed additions.
class Histogram {
 public:
  void add(std::uint64_t value) noexcept;
  HistogramCounts read() const;

 private:
  static constexpr unsigned kFineBits = 5, kMaxBits = 40;
  static constexpr std::size_t kFine = std::size_t{1} << kFineBits;
  static constexpr std::size_t kBuckets = kFine * (kMaxBits - kFineBits + 1);
  static std::size_t bucket_of(std::uint64_t value) noexcept;
  static std::uint64_t highest_in(std::size_t bucket) noexcept;

  std::array<std::atomic<std::uint64_t>, kBuckets> counts_{};
  std::atomic<std::uint64_t> sum_{0};
  std::atomic<std::uint64_t> highest_{0};
};

}  // namespace fleetrun::ps
