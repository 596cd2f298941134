// The layout of a log's segments (ps/durable/write_log.h), for who writes and who reads them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "runtime/base/crc32c.h"

namespace fleetrun::ps {

struct SegmentHead {
  std::array<char, 8> magic = {'F', 'L', 'P', 'S', 'L', 'O', 'G', '1'};
  std::uint64_t segment = 0;

  bool operator==(const SegmentHead&) const = default;
};
static_assert(sizeof(SegmentHead) == 16);

struct RecordHead {
  static constexpr std::uint32_t kMark = 0x63726c66;  // "flrc"
  std::uint32_t mark = kMark;
  std::uint32_t length = 0;
  std::uint32_t kind = 0;
  std::uint32_t checksum = 0;
  std::uint64_t durable = 0;
};
static_assert(sizeof(RecordHead) == 24);

/// The first record of a segment that follows another: how long that one was then, and how much of it was
/// safe. Where it has turned out shorter, with the host gone down in between, this segment goes on from what
/// is not there.
struct Follows {
  static constexpr std::uint32_t kKind = UINT32_MAX;
  std::uint64_t bytes = 0;
  std::uint64_t safe = 0;
};
static_assert(sizeof(Follows) == 16);

/// What the checksum of a record's payload goes on from.
inline std::uint32_t checksum_of_head(const RecordHead& head, std::uint64_t segment,
                                      std::uint64_t at) noexcept {
  const std::array<std::uint64_t, 5> covered = {segment, at, head.length, head.kind, head.durable};
  return crc32c(std::as_bytes(std::span(covered)));
}

/// The record with which `bytes` begin, `at` bytes into the segment; none where they do not begin with a
/// whole one.
inline std::optional<RecordHead> whole_record(std::span<const std::byte> bytes, std::uint64_t segment,
                                              std::uint64_t at) noexcept {
  RecordHead head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.mark != RecordHead::kMark || head.length > bytes.size() - sizeof head) return std::nullopt;
  const auto payload = bytes.subspan(sizeof head, head.length);
  if (crc32c(payload, checksum_of_head(head, segment, at)) != head.checksum) return std::nullopt;
  return head;
}

}  // namespace fleetrun::ps
