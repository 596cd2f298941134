#include "ps/base/message.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <string>

#include "runtime/base/error.h"

namespace fleetrun::ps {

Reader::Reader(std::vector<std::span<const std::byte>> pieces) : pieces_(std::move(pieces)) {
  for (const auto& piece : pieces_) remaining_ += piece.size();
  if (!pieces_.empty()) piece_ = pieces_[next_++];
}

std::vector<std::span<const std::byte>> Reader::pieces() const {
  std::vector<std::span<const std::byte>> out{piece_};
  out.insert(out.end(), pieces_.begin() + static_cast<std::ptrdiff_t>(next_), pieces_.end());
  return out;
}

void Reader::require(std::size_t count, std::size_t size) const {
  if (count <= remaining_ / size) return;
  throw Error(ErrorKind::data, "the message is cut short: " + std::to_string(count) + " values of " +
                                   std::to_string(size) + " bytes announced, " + std::to_string(remaining_) +
                                   " bytes left");
}

void Reader::read_across(std::byte* out, std::size_t size) {
  require(size, 1);
  remaining_ -= size;
  while (size > 0) {
    if (piece_.empty()) {
      piece_ = pieces_[next_++];
      continue;
    }
    const std::size_t part = std::min(size, piece_.size());
    std::memcpy(out, piece_.data(), part);
    out += part;
    size -= part;
    piece_ = piece_.subspan(part);
  }
}

std::span<const std::byte> Reader::view(std::size_t size, std::size_t alignment, Message& copy) {
  if (size == 0) return {};
  if (piece_.empty() && next_ < pieces_.size()) piece_ = pieces_[next_++];
  if (size <= piece_.size() && reinterpret_cast<std::uintptr_t>(piece_.data()) % alignment == 0) {
    const auto out = piece_.first(size);
    piece_ = piece_.subspan(size);
    remaining_ -= size;
    return out;
  }
  copy = Message(size);
  read(copy.data(), size);
  return copy.bytes();
}

std::byte* Writer::take(std::size_t size) noexcept {
  assert(size <= static_cast<std::size_t>(end_ - at_));
  std::byte* out = at_;
  at_ += size;
  return out;
}

}  // namespace fleetrun::ps
