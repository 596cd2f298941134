#include "ps/watch/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fleetrun::ps {

std::uint64_t HistogramCounts::count() const noexcept {
  std::uint64_t total = 0;
  for (const auto& [value, many] : buckets) total += many;
  return total;
}

std::uint64_t HistogramCounts::quantile(double q) const noexcept {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count())));
  std::uint64_t seen = 0;
  for (const auto& [value, many] : buckets) {
    seen += many;
    if (seen >= std::max<std::uint64_t>(wanted, 1)) return std::min(value, highest);
  }
  return 0;
}

std::size_t Histogram::bucket_of(std::uint64_t value) noexcept {
  value = std::min(value, (std::uint64_t{1} << kMaxBits) - 1);
  if (value < kFine) return value;
  const auto power = static_cast<unsigned>(std::bit_width(value)) - 1;
  return kFine * (power - kFineBits + 1) + ((value >> (power - kFineBits)) & (kFine - 1));
}

std::uint64_t Histogram::highest_in(std::size_t bucket) noexcept {
  if (bucket < kFine) return bucket;
  const std::size_t shift = bucket / kFine - 1;
  return ((kFine + bucket % kFine + 1) << shift) - 1;
}

void Histogram::add(std::uint64_t value) noexcept {
  counts_[bucket_of(value)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
  std::uint64_t highest = highest_.load(std::memory_order_relaxed);
  while (value > highest && !highest_.compare_exchange_weak(highest, value, std::memory_order_relaxed)) {
  }
}

HistogramCounts Histogram::read() const {
  HistogramCounts out;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    const std::uint64_t many = counts_[i].load(std::memory_order_relaxed);
    if (many != 0) out.buckets.emplace_back(highest_in(i), many);
  }
  out.sum = sum_.load(std::memory_order_relaxed);
  out.highest = highest_.load(std::memory_order_relaxed);
  return out;
}

}  // namespace fleetrun::ps
