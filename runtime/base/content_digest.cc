#include "runtime/base/content_digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace fleetrun {
namespace {

constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87ULL;
constexpr std::uint64_t kPrime2 = 0xc2b2ae3d27d4eb4fULL;
constexpr std::uint64_t kPrime3 = 0x165667b19e3779f9ULL;
constexpr std::uint64_t kPrime4 = 0x85ebca77c2b2ae63ULL;
constexpr std::uint64_t kPrime5 = 0x27d4eb2f165667c5ULL;

template <class T>
T word_at(const std::byte* at) noexcept {
  T word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

constexpr std::uint64_t mixed(std::uint64_t lane, std::uint64_t word) noexcept {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

}  // namespace

void ContentDigest::add_stripe(const std::byte* stripe) noexcept {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i] = mixed(lanes_[i], word_at<std::uint64_t>(stripe + 8 * i));
  }
}

void ContentDigest::add(std::span<const std::byte> bytes) noexcept {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  const std::size_t held = size_ % kStripe;
  size_ += left;
  if (held != 0) {
    const std::size_t part = std::min(left, kStripe - held);
    std::memcpy(rest_.data() + held, at, part);
    at += part;
    left -= part;
    if (held + part < kStripe) return;
    add_stripe(rest_.data());
  }
  for (; left >= kStripe; left -= kStripe, at += kStripe) add_stripe(at);
  if (left != 0) std::memcpy(rest_.data(), at, left);
}

std::uint64_t ContentDigest::value() const noexcept {
  std::uint64_t hash = kPrime5;
  if (size_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = (hash ^ mixed(0, lane)) * kPrime1 + kPrime4;
  }
  hash += size_;
  const std::byte* at = rest_.data();
  std::size_t left = size_ % kStripe;
  for (; left >= 8; left -= 8, at += 8) {
    hash = std::rotl(hash ^ mixed(0, word_at<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  for (; left >= 4; left -= 4, at += 4) {
    hash = std::rotl(hash ^ (word_at<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
  }
  for (; left > 0; --left, ++at)
    hash = std::rotl(hash ^ (std::to_integer<std::uint64_t>(*at) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace fleetrun
