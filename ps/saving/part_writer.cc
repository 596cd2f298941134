#include "ps/saving/part_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "ps/base/directory_sync.h"
#include "ps/base/key_partition.h"
#include "ps/saving/parallel.h"
#include "ps/saving/piece_format.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

// Small tables make one file; the largest ones as many as there are shards, so that a host with that many
// processors writes and reads them all at once.
constexpr std::uint64_t kPieceBytes = std::uint64_t{32} << 20;
constexpr std::size_t kRunBytes = std::size_t{256} << 10;

std::uint32_t pieces_for(const std::vector<TableConfig>& tables, const TableCut& cut) {
  std::uint64_t bytes = 0;
  for (const TableConfig& config : tables) {
    if (config.kind != TableConfig::Kind::sparse) continue;
    bytes += cut.count(config.id) * (sizeof(std::uint64_t) + table_head_of(config).floats * sizeof(float));
  }
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes / kPieceBytes, 1, SparseTable::kShards));
}

void write_floats(BlockWriter& out, std::span<const float> values) {
  out.write(values.data(), values.size_bytes());
}

void write_text(BlockWriter& out, const std::string& text) {
  out.value(static_cast<std::uint32_t>(text.size()));
  out.write(text.data(), text.size());
}

// Gathers rows to runs, whose length comes before them.
class RunWriter {
 public:
  RunWriter(BlockWriter& out, std::size_t row_floats)
      : out_(out),
        row_bytes_(sizeof(std::uint64_t) + row_floats * sizeof(float)),
        max_(std::clamp<std::size_t>(kRunBytes / row_bytes_, 1, kMaxRowsOfARun)) {
    run_.reserve(max_ * row_bytes_);
  }

  void add(std::uint64_t key, std::span<const float> row) {
    const std::size_t at = run_.size();
    run_.resize(at + row_bytes_);
    std::memcpy(run_.data() + at, &key, sizeof key);
    std::memcpy(run_.data() + at + sizeof key, row.data(), row.size_bytes());
    if (++rows_ == max_) flush();
  }
  void finish() {
    if (rows_ != 0) flush();
    out_.value(std::uint32_t{0});
  }

 private:
  void flush() {
    out_.value(static_cast<std::uint32_t>(rows_));
    out_.write(run_.data(), run_.size());
    run_.clear();
    rows_ = 0;
  }

  BlockWriter& out_;
  std::size_t row_bytes_;
  std::size_t max_;
  std::size_t rows_ = 0;
  std::vector<std::byte> run_;
};

void write_dense(BlockWriter& out, const DenseTable::Contents& contents, std::uint64_t begin) {
  out.value(DenseHead{begin, contents.values.size(), contents.steps, contents.has_values ? 1u : 0u});
  write_floats(out, contents.values);
  write_floats(out, contents.state);
}

void write_admission(BlockWriter& out, std::uint32_t table, const TableCut& cut, std::size_t begin,
                     std::size_t end) {
  bool started = false;
  for (std::size_t shard = begin; shard < end; ++shard) {
    const auto words = cut.admission_words(table, shard);
    if (words.empty()) continue;
    if (!std::exchange(started, true)) out.value(SectionHead{SectionHead::admission, table});
    out.value(static_cast<std::uint32_t>(shard));
    out.value(static_cast<std::uint32_t>(words.size()));
    out.write(words.data(), words.size_bytes());
  }
  if (started) out.value(kNoShard);
}

void write_erased(BlockWriter& out, std::uint32_t table, const TableCut& cut, std::size_t begin,
                  std::size_t end) {
  out.value(SectionHead{SectionHead::erased, table});
  for (std::size_t shard = begin; shard < end; ++shard) {
    for (auto keys = cut.erased(table, shard); !keys.empty();) {
      const auto run = keys.first(std::min<std::size_t>(keys.size(), kMaxRowsOfARun));
      out.value(static_cast<std::uint32_t>(run.size()));
      out.write(run.data(), run.size_bytes());
      keys = keys.subspan(run.size());
    }
  }
  out.value(std::uint32_t{0});
}

// What the pieces of a part are made from.
struct Part {
  const SaveName& save;
  const ServerPlace& place;
  const std::vector<TableConfig>& tables;
  const TableCut& cut;
  const std::vector<NamedBytes>& named;
  std::uint32_t pieces;
};

SavedPiece write_piece(BlockWriter& out, std::uint32_t piece, const Part& part) {
  const auto& [save, place, tables, cut, named, pieces] = part;
  PieceHead head;
  head.mode = static_cast<std::uint32_t>(save.mode);
  head.rank = place.rank;
  head.servers = place.servers;
  head.piece = piece;
  head.pieces = pieces;
  head.save = save.save;
  head.generation = save.generation;
  head.tables = static_cast<std::uint32_t>(tables.size());
  if (std::ranges::any_of(tables, [](const TableConfig& table) { return table.expire_seconds != 0; }))
    head.second = place.clock();
  out.value(head);
  for (const TableConfig& config : tables) {
    out.value(table_head_of(config));
    write_text(out, config.name);
  }
  TableCut::Scratch scratch;
  for (const TableConfig& config : tables) {
    if (config.kind == TableConfig::Kind::sparse) {
      out.value(SectionHead{SectionHead::rows, config.id});
      RunWriter runs(out, table_head_of(config).floats);
      const std::size_t begin = SparseTable::kShards * piece / pieces;
      const std::size_t end = SparseTable::kShards * (piece + 1) / pieces;
      for (std::size_t shard = begin; shard < end; ++shard) {
        cut.rows(config.id, shard, scratch,
                 [&](std::uint64_t key, std::span<const float> row) { runs.add(key, row); });
      }
      runs.finish();
      write_admission(out, config.id, cut, begin, end);
      if (save.mode == SaveMode::changes) write_erased(out, config.id, cut, begin, end);
    } else if (piece == 0) {
      out.value(SectionHead{SectionHead::dense, config.id});
      write_dense(out, cut.dense(config.id), dense_block(config, place.servers, place.rank).begin);
    }
  }
  for (std::size_t i = 0; piece == 0 && i < named.size(); ++i) {
    out.value(SectionHead{SectionHead::named, 0});
    write_text(out, named[i].name);
    out.value(std::uint64_t{named[i].bytes.size()});
    out.write(named[i].bytes.data(), named[i].bytes.size());
  }
  out.value(SectionHead{});
  const BlockWriter::Written written = out.finish();
  return {written.bytes, written.digest};
}

}  // namespace

PartPieces::PartPieces(ServerPlace place, const std::vector<TableConfig>& tables, TableCut cut,
                       std::vector<NamedBytes> named)
    : place_(place),
      tables_(tables),
      cut_(std::move(cut)),
      named_(std::move(named)),
      count_(pieces_for(tables_, cut_)) {}

SavedPiece PartPieces::write(std::uint32_t piece, std::vector<std::byte>& out) const {
  BlockWriter writer(out);
  const SaveName save;
  return write_piece(writer, piece, {save, place_, tables_, cut_, named_, count_});
}

PartWriter::PartWriter(SaveName save, ServerPlace place) : save_(std::move(save)), place_(place) {}

PartWriter::~PartWriter() {
  if (pieces_.empty()) return;
  pieces_.clear();
  remove_other_pieces(save_.directory);
}

std::vector<SavedPiece> PartWriter::write(const std::vector<TableConfig>& tables, const TableCut& cut,
                                          const std::vector<NamedBytes>& named) {
  std::error_code error;
  std::filesystem::create_directories(save_.directory, error);
  if (error) {
    throw Error(ErrorKind::host, "cannot make the directory " + save_.directory + ": " + error.message(),
                "save to a directory that the servers may write to");
  }
  const std::uint32_t pieces = pieces_for(tables, cut);
  for (std::uint32_t piece = 0; piece < pieces; ++piece) {
    pieces_.push_back(std::make_unique<BlockWriter>(piece_path(save_, place_.rank, piece)));
  }
  std::vector<SavedPiece> out(pieces);
  work_in_parallel(pieces, [&](std::size_t piece) {
    out[piece] = write_piece(*pieces_[piece], static_cast<std::uint32_t>(piece),
                             {save_, place_, tables, cut, named, pieces});
  });
  sync_directory(save_.directory);
  return out;
}

void PartWriter::check_still_there() const {
  for (const auto& piece : pieces_) piece->check_still_there();
}

}  // namespace fleetrun::ps
