// The columnar file, ".frc": examples written once, as columns, and read again without parsing.
// All numbers are little endian.
//
//   head     "FRCOLUMN" | version u32 = 1 | 52 bytes of 0
//   sections of block 0, slot by slot; of block 1; …     each begins at a multiple of 64;
//                                                        between them bytes of 0
//   footer   at the next multiple of 64
//   end      footer's bytes u64 | digest u64 | "FRCOLEND"
//
//   section  values | counts
//     values   of an int64 slot: unsigned numbers of 1, 2, 4 or 8 bytes, to which the section's base is added
//              (modulo 2^64); of a float32 slot: floats
//     counts   how many values each row has, unsigned, 1, 2 or 4 bytes each;
//              not there where all rows have as many
//
//   footer   slots u32 | rows of a block u32 | rows u64
//            each slot: type u8 (0 int64, 1 float32) | dense u8 | 0 u16 | bytes of its name u32 | width u64 |
//            name
//            each block, each slot: values u64 | base i64 | crc32c of the section u32 | bytes of a value u8 |
//            bytes of a count u8 (0: no counts) | 0 u16
//
// All blocks but the last have the same number of rows. Where a section lies follows from the sizes of those
// before it, so no offset is believed, and every value and every row with counts takes at least a byte of the
// file, so no size that it claims makes anybody allocate more than a small multiple of the file. The digest
// (runtime/base/content_digest.h) is that of the footer, which has the checksums of all sections: files with
// equal digests hold equal examples. A file is complete or has no end:
// writers give it its name when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/base/batch.h"

namespace fleetrun::dataset {

inline constexpr std::string_view kColumnarSuffix = ".frc";
inline constexpr std::string_view kColumnarHead = "FRCOLUMN";
inline constexpr std::string_view kColumnarEnd = "FRCOLEND";
inline constexpr std::uint32_t kColumnarVersion = 1;
inline constexpr std::size_t kColumnarHeadBytes = 64;
inline constexpr std::size_t kColumnarEndBytes = 24;
inline constexpr std::size_t kColumnarAlignment = 64;

/// A slot of one block.
struct ColumnarSection {
  std::uint64_t values = 0;
  std::int64_t base = 0;
  std::uint32_t checksum = 0;
  std::uint8_t value_bytes = 0;
  std::uint8_t count_bytes = 0;

  std::uint64_t bytes(std::uint64_t rows) const noexcept { return values * value_bytes + rows * count_bytes; }
  bool operator==(const ColumnarSection&) const = default;
};

struct ColumnarFooter {
  std::vector<Slot> slots;
  std::uint32_t block_rows = 0;
  std::uint64_t rows = 0;
  std::vector<ColumnarSection> sections;  // [block * slots.size() + slot]

  std::uint64_t blocks() const noexcept { return rows / block_rows + (rows % block_rows != 0); }
  std::uint64_t rows_of(std::uint64_t block) const noexcept {
    return block + 1 < blocks() ? block_rows : rows - block * block_rows;
  }
  bool operator==(const ColumnarFooter&) const = default;
};

/// Shape: rows is block_rows * (blocks - 1) + those of the last block; sections has blocks() * slots.size().
std::vector<std::byte> encode_footer(const ColumnarFooter& footer);

/// `sections_bytes` is what lies between the head and the footer: where the sections must fit, exactly.
/// Throws: Error(data) beginning with `file` for bytes that no writer writes, whatever they are.
ColumnarFooter decode_footer(std::span<const std::byte> bytes, std::uint64_t sections_bytes,
                             const std::string& file);

constexpr std::uint64_t columnar_aligned(std::uint64_t offset) noexcept {
  return (offset + kColumnarAlignment - 1) / kColumnarAlignment * kColumnarAlignment;
}

}  // namespace fleetrun::dataset
