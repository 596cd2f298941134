#include "ps/shm/arena.h"

#include <algorithm>

namespace fleetrun::ps {

// First fit over the pieces in use: there are as many as calls under way, a few.
std::optional<std::uint64_t> ShmArena::allocate(std::uint64_t size) {
  if (size > size_) return std::nullopt;
  const std::uint64_t wanted = std::max(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  std::uint64_t at = 0;
  auto next = pieces_.begin();
  for (; next != pieces_.end() && next->first - at < wanted; ++next) at = next->first + next->second;
  if (wanted > size_ || at > size_ - wanted) return std::nullopt;
  pieces_.emplace_hint(next, at, wanted);
  used_ += wanted;
  touched_ = std::max(touched_, at + wanted);
  return at;
}

bool ShmArena::free(std::uint64_t offset) {
  const auto piece = pieces_.find(offset);
  if (piece == pieces_.end()) return false;
  used_ -= piece->second;
  pieces_.erase(piece);
  return true;
}

}  // namespace fleetrun::ps
