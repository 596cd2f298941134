// What is in a piece, one of the files that a server's part of a save consists of;
// all in the blocks of ps/base/block_file.h.
//
//   PieceHead | per table: TableHead, name: length u32, bytes
//   sections until the one of kind end:  SectionHead, and by kind
//     rows    { count u32 | count x { key u64 | f32[row] } } until count is 0;
//             row as ps/sparse_table.h shows it
//     dense   DenseHead | f32[floats] values | f32[floats] state, per kind of state
//     admission  { shard u32 | count u32 | u64[count] } until shard is ~0; what ps/admission.h has counted
//     erased  { count u32 | u64[count] } until count is 0; keys whose rows have gone (SaveMode::changes)
//     named   name: length u32, bytes | length u64, bytes        what else a server keeps
//                                                                (ps/saving/part_writer.h)
//
// Each sparse table has a rows section in every piece, with shards of its own; dense tables and named bytes
// are in the first piece. Rows of a shard are in key order, so that equal tables make equal files.
#pragma once

#include <array>
#include <cstdint>

#include "ps/base/table_config.h"

namespace fleetrun::ps {

struct PieceHead {
  static constexpr std::array<char, 8> kMagic = {'F', 'L', 'T', 'A', 'B', 'L', 'E', 'S'};

  std::array<char, 8> magic = kMagic;
  std::uint32_t version = 2;
  std::uint32_t mode = 0;
  std::uint32_t rank = 0;
  std::uint32_t servers = 0;
  std::uint32_t piece = 0;
  std::uint32_t pieces = 0;
  std::uint64_t save = 0;
  std::uint64_t generation = 0;
  std::uint32_t tables = 0;
  /// By the server's clock (ps/table/row_clock.h); 0 where no rows expire by time.
  std::uint32_t second = 0;
};
static_assert(sizeof(PieceHead) == 56);

struct TableHead {
  std::uint32_t id = 0;
  std::uint32_t kind = 0;
  std::uint32_t rule = 0;
  /// The rule of column 0, one higher; 0 where it has none of its own.
  std::uint32_t embed_rule = 0;
  std::uint32_t accessor = 0;
  std::uint32_t admission = 0;
  /// 1: rows end with the second of their last push.
  std::uint32_t has_seconds = 0;
  /// Sparse: floats of a row. Dense: floats of state per value.
  std::uint32_t floats = 0;
  std::uint64_t width = 0;
  /// Dense: says with the number of servers who held what (ps/base/key_partition.h).
  std::uint64_t min_block = 0;
};
static_assert(sizeof(TableHead) == 48);

struct SectionHead {
  enum Kind : std::uint32_t { end, rows, dense, named, admission, erased };

  std::uint32_t kind = end;
  std::uint32_t table = 0;
};
static_assert(sizeof(SectionHead) == 8);

struct DenseHead {
  std::uint64_t begin = 0;
  std::uint64_t floats = 0;
  std::uint32_t steps = 0;
  std::uint32_t has_values = 0;
};
static_assert(sizeof(DenseHead) == 24);

constexpr std::uint32_t kMaxRowsOfARun = 1 << 16;
constexpr std::uint32_t kLongestName = 1 << 16;
constexpr std::uint32_t kNoShard = 0xffffffff;

TableHead table_head_of(const TableConfig& config);

}  // namespace fleetrun::ps
