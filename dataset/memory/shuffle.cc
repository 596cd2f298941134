// Large vectors are shuffled in two steps, so that each works within a cache: every value goes to a random
// bucket, and then each bucket is shuffled. Each chunk of values and each bucket has random words of its own,
// so that the result does not depend on who does it.
#include "dataset/memory/shuffle.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <thread>
#include <utility>

namespace fleetrun::dataset {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;
constexpr std::size_t kMaxBuckets = 1024;

/// Calls work(i) for every i below `count`.
template <class Work>
void in_parallel(std::size_t count, std::size_t threads, Work work) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(run);
  run();
}

void shuffle_range(std::uint32_t* values, std::size_t size, RandomWords words) noexcept {
  for (std::size_t i = size; i > 1; --i) std::swap(values[i - 1], values[words.below(i)]);
}

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87ULL, kPrime2 = 0xC2B2AE3D27D4EB4FULL,
                        kPrime3 = 0x165667B19E3779F9ULL, kPrime4 = 0x85EBCA77C2B2AE63ULL,
                        kPrime5 = 0x27D4EB2F165667C5ULL;

template <class T>
T read(const char* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint64_t round_of(std::uint64_t lane, std::uint64_t input) noexcept {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

}  // namespace

void shuffle(std::vector<std::uint32_t>& values, std::uint64_t seed, std::size_t threads) {
  const std::size_t chunks = (values.size() + kChunk - 1) / kChunk;
  if (chunks <= 1) return shuffle_range(values.data(), values.size(), RandomWords(seed, 0));
  const std::size_t buckets = std::min(kMaxBuckets, std::bit_ceil(4 * chunks));
  const auto chunk_of = [&](std::size_t c) {
    return std::pair(c * kChunk, std::min(values.size(), (c + 1) * kChunk));
  };
  // places[c * buckets + b]: where chunk c puts its next value of bucket b.
  std::vector<std::size_t> places(chunks * buckets);
  in_parallel(chunks, threads, [&](std::size_t c) {
    RandomWords words(seed, 2 * c + 1);
    const auto [begin, end] = chunk_of(c);
    for (std::size_t i = begin; i < end; ++i) ++places[c * buckets + words.below(buckets)];
  });
  std::vector<std::size_t> starts(buckets + 1);
  std::size_t total = 0;
  for (std::size_t b = 0; b < buckets; ++b) {
    starts[b] = total;
    for (std::size_t c = 0; c < chunks; ++c) total += std::exchange(places[c * buckets + b], total);
  }
  starts[buckets] = total;
  std::vector<std::uint32_t> out(values.size());
  in_parallel(chunks, threads, [&](std::size_t c) {
    RandomWords words(seed, 2 * c + 1);  // the same words as before
    const auto [begin, end] = chunk_of(c);
    for (std::size_t i = begin; i < end; ++i) out[places[c * buckets + words.below(buckets)]++] = values[i];
  });
  in_parallel(buckets, threads, [&](std::size_t b) {
    shuffle_range(out.data() + starts[b], starts[b + 1] - starts[b], RandomWords(seed, 2 * b + 2));
  });
  values = std::move(out);
}

std::uint64_t xxh64(std::string_view bytes) noexcept {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  std::uint64_t hash = kPrime5;
  if (bytes.size() >= 32) {
    std::uint64_t lanes[4] = {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
    for (; end - at >= 32; at += 32)
      for (int i = 0; i < 4; ++i) lanes[i] = round_of(lanes[i], read<std::uint64_t>(at + 8 * i));
    hash =
        std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) hash = (hash ^ round_of(0, lane)) * kPrime1 + kPrime4;
  }
  hash += bytes.size();
  for (; end - at >= 8; at += 8)
    hash = std::rotl(hash ^ round_of(0, read<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (end - at >= 4) {
    hash = std::rotl(hash ^ (read<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at < end; ++at) hash = std::rotl(hash ^ (static_cast<unsigned char>(*at) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace fleetrun::dataset
