#include "ps/saving/part_loader.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>
#include <utility>

#include "ps/base/key_partition.h"
#include "ps/saving/parallel.h"
#include "ps/saving/piece_format.h"
#include "ps/table/accessor.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

// What the readers of all pieces fill together.
struct Loading {
  const Manifest& manifest;
  ServerPlace place;
  const std::vector<TableConfig>& tables;
  TableSet& set;
  std::mutex mutex = {};  // guards what follows
  std::map<std::uint32_t, DenseTable::Contents> dense = {};
  std::map<std::uint32_t, std::uint64_t> found = {};  // values of dense tables that are this server's
  std::vector<NamedBytes> named = {};
  std::map<std::uint32_t, std::vector<std::uint64_t>> erased = {};
};

class PieceReader {
 public:
  PieceReader(std::string path, const SavedPiece& piece, Loading& loading)
      : path_(std::move(path)), piece_(piece), loading_(loading), in_(path_, piece.bytes) {}
  PieceReader(std::string name, const SavedPiece& piece, std::span<const std::byte> memory, Loading& loading)
      : path_(std::move(name)), piece_(piece), loading_(loading), in_(path_, memory) {}

  void read(std::uint32_t rank, std::uint32_t piece);

 private:
  void check_head(std::uint32_t rank, std::uint32_t piece);
  void check_table(const TableConfig& config);
  const TableConfig& config_of(const SectionHead& head) const;
  void read_rows(const TableConfig& config);
  void read_admission(const TableConfig& config);
  void read_erased(const TableConfig& config);
  void read_dense(const TableConfig& config, std::uint32_t rank);
  void merge_dense(const TableConfig& config, const DenseHead& head, const Block& saved,
                   const std::vector<std::vector<float>>& runs);
  NamedBytes read_named();
  std::string read_text();
  [[noreturn]] void fail(const std::string& what) const { throw Error(ErrorKind::data, path_ + ": " + what); }
  void expect(const std::string& what, const std::string& saved, const std::string& wanted) const {
    if (saved == wanted) return;
    throw Error(ErrorKind::config,
                path_ + ": " + what + " is " + saved + " in the file, " + wanted + " in this program",
                "load what the same program saved");
  }

  std::string path_;
  SavedPiece piece_;
  Loading& loading_;
  BlockReader in_;
  std::map<std::uint32_t, std::uint64_t> min_blocks_;
  std::map<std::uint32_t, bool> same_admission_;
  std::map<std::uint32_t, std::size_t> row_floats_;
  std::uint32_t second_ = 0;
};

std::string rule_name(std::uint32_t kind) {
  return std::string(to_string(static_cast<UpdateRule::Kind>(kind)));
}

void PieceReader::read(std::uint32_t rank, std::uint32_t piece) {
  check_head(rank, piece);
  for (const TableConfig& config : loading_.tables) check_table(config);
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (;;) {
    const auto head = in_.value<SectionHead>();
    if (head.kind == SectionHead::end) break;
    if (head.kind == SectionHead::named) {
      NamedBytes named = read_named();
      const std::lock_guard lock(loading_.mutex);
      if (rank == loading_.place.rank && loading_.manifest.parts.size() == loading_.place.servers) {
        loading_.named.push_back(std::move(named));
      }
      continue;
    }
    const TableConfig& config = config_of(head);
    if (!seen.emplace(head.kind, head.table).second) fail("table '" + config.name + "' is there twice");
    if (head.kind == SectionHead::rows) {
      read_rows(config);
    } else if (head.kind == SectionHead::admission) {
      read_admission(config);
    } else if (head.kind == SectionHead::erased) {
      read_erased(config);
    } else {
      read_dense(config, rank);
    }
  }
  in_.expect_end(piece_.digest);
  for (const TableConfig& config : loading_.tables) {
    const bool is_dense = config.kind == TableConfig::Kind::dense;
    const bool has_changes = loading_.manifest.mode == SaveMode::changes;
    if (!is_dense && (!seen.contains({SectionHead::rows, config.id}) ||
                      has_changes != seen.contains({SectionHead::erased, config.id})))
      fail("table '" + config.name + "' is missing");
    if (is_dense && (piece == 0) != seen.contains({SectionHead::dense, config.id})) {
      fail("table '" + config.name + "' is missing, or in the wrong piece");
    }
  }
}

void PieceReader::check_head(std::uint32_t rank, std::uint32_t piece) {
  const auto head = in_.value<PieceHead>();
  const Manifest& manifest = loading_.manifest;
  if (head.magic != PieceHead::kMagic) fail("not a part of saved tables");
  expect("the format version", std::to_string(head.version), std::to_string(PieceHead().version));
  if (head.rank != rank || head.piece != piece || head.servers != manifest.parts.size() ||
      head.pieces != manifest.parts[rank].size() || head.save != manifest.save ||
      head.generation != manifest.generation || head.mode != static_cast<std::uint32_t>(manifest.mode)) {
    fail("it is not the part that the manifest names");
  }
  second_ = head.second;
  expect("the number of tables", std::to_string(head.tables), std::to_string(loading_.tables.size()));
}

void PieceReader::check_table(const TableConfig& config) {
  const auto head = in_.value<TableHead>();
  const std::string name = read_text();
  expect("the name of table " + std::to_string(config.id), "'" + name + "'", "'" + config.name + "'");
  const TableHead wanted = table_head_of(config);
  min_blocks_[config.id] = head.min_block;
  same_admission_[config.id] = head.admission == wanted.admission;
  row_floats_[config.id] = head.floats;
  if (head.has_seconds > 1 || head.has_seconds > head.floats)
    fail("rows of table '" + name + "' have no such time");
  const std::string of = " of table '" + config.name + "'";
  expect("the id" + of, std::to_string(head.id), std::to_string(wanted.id));
  expect("the kind" + of, std::string(to_string(static_cast<TableConfig::Kind>(head.kind))),
         std::string(to_string(config.kind)));
  expect("the width" + of, std::to_string(head.width), std::to_string(wanted.width));
  expect("the update rule" + of, rule_name(head.rule), rule_name(wanted.rule));
  expect("the accessor" + of, std::string(to_string(static_cast<Accessor::Kind>(head.accessor))),
         std::string(to_string(config.accessor.kind)));
  if (head.embed_rule != wanted.embed_rule) {
    expect("the update rule of column 0" + of,
           head.embed_rule == 0 ? "that of the others" : rule_name(head.embed_rule - 1),
           wanted.embed_rule == 0 ? "that of the others" : rule_name(wanted.embed_rule - 1));
  }
  expect(config.kind == TableConfig::Kind::sparse ? "the length of a row" + of : "the optimizer state" + of,
         std::to_string(head.floats - head.has_seconds), std::to_string(wanted.floats - wanted.has_seconds));
}

const TableConfig& PieceReader::config_of(const SectionHead& head) const {
  if (head.kind > SectionHead::erased) fail("it has a section of kind " + std::to_string(head.kind));
  const auto kind = head.kind == SectionHead::dense ? TableConfig::Kind::dense : TableConfig::Kind::sparse;
  for (const TableConfig& config : loading_.tables) {
    if (config.id == head.table && config.kind == kind) return config;
  }
  fail("it has contents of a table " + std::to_string(head.table) + " that it does not name");
}

void PieceReader::read_rows(const TableConfig& config) {
  SparseTable& table = loading_.set.sparse(config.id);
  const RowLayout& layout = table.layout();
  const std::size_t row_floats = row_floats_.at(config.id);
  const std::size_t row_bytes = sizeof(std::uint64_t) + row_floats * sizeof(float);
  const std::uint32_t now = loading_.place.clock();
  // A save of mode 3 ends a day after its rows are written: for who goes on from it, too.
  const bool ages =
      config.accessor.kind != Accessor::Kind::plain && loading_.manifest.mode == SaveMode::checkpoint;
  std::vector<std::byte> copy;
  std::vector<float> row(std::max(row_floats, layout.floats));
  for (;;) {
    const auto count = in_.value<std::uint32_t>();
    if (count == 0) return;
    if (count > kMaxRowsOfARun)
      fail("table '" + config.name + "' has a run of " + std::to_string(count) + " rows");
    const std::byte* at = in_.view(count * row_bytes, copy);
    static_cast<void>(loading_.set.stay());  // makes room where memory has a budget
    for (std::uint32_t i = 0; i < count; ++i, at += row_bytes) {
      std::uint64_t key;
      std::memcpy(&key, at, sizeof key);
      if (server_of(key, loading_.place.servers) != loading_.place.rank) continue;
      std::memcpy(row.data(), at + sizeof key, row_floats * sizeof(float));
      if (ages) {
        Statistics statistics = read_statistics(row.data());
        note_saved(config.accessor, statistics, SaveMode::checkpoint, statistics);
        write_statistics(statistics, row.data());
      }
      if (layout.touched != RowLayout::kNone) {
        const std::uint32_t then = row_floats == layout.floats ? read_second(layout, row.data()) : 0;
        write_second(layout, time_after_load(then, second_, now, config.expire_seconds), row.data());
      }
      table.insert(key, row);
    }
  }
}

void PieceReader::read_admission(const TableConfig& config) {
  const auto is_mine = [this](std::uint64_t key) {
    return server_of(key, loading_.place.servers) == loading_.place.rank;
  };
  std::vector<std::uint64_t> words;
  for (;;) {
    const auto shard = in_.value<std::uint32_t>();
    if (shard == kNoShard) return;
    const auto count = in_.value<std::uint32_t>();
    if (shard >= SparseTable::kShards || count > in_.left() / sizeof(std::uint64_t)) {
      fail("table '" + config.name + "' has counted what cannot be in the file");
    }
    words.resize(count);
    in_.read(words.data(), words.size() * sizeof(std::uint64_t));
    // Of another way of admission there is nothing to go on from.
    if (same_admission_.at(config.id)) loading_.set.sparse(config.id).merge_admission(shard, words, is_mine);
  }
}

void PieceReader::read_erased(const TableConfig& config) {
  std::vector<std::uint64_t> keys;
  while (const auto count = in_.value<std::uint32_t>()) {
    if (count > kMaxRowsOfARun)
      fail("table '" + config.name + "' has a run of " + std::to_string(count) + " erased keys");
    keys.resize(count);
    in_.read(keys.data(), keys.size() * sizeof(std::uint64_t));
    std::erase_if(keys, [this](std::uint64_t key) {
      return server_of(key, loading_.place.servers) != loading_.place.rank;
    });
    const std::lock_guard lock(loading_.mutex);
    std::vector<std::uint64_t>& all = loading_.erased[config.id];
    all.insert(all.end(), keys.begin(), keys.end());
  }
}

void PieceReader::read_dense(const TableConfig& config, std::uint32_t rank) {
  const auto head = in_.value<DenseHead>();
  TableConfig then = config;
  then.min_block = min_blocks_.at(config.id);
  const Block saved = dense_block(then, static_cast<std::uint32_t>(loading_.manifest.parts.size()), rank);
  if (head.begin != saved.begin || head.floats != saved.size()) {
    fail("table '" + config.name + "' has values from " + std::to_string(head.begin) + ", " +
         std::to_string(head.floats) + " of them; " + std::to_string(saved.size()) + " from " +
         std::to_string(saved.begin) + " belong here");
  }
  std::vector<std::vector<float>> runs(1 + table_head_of(config).floats);
  for (std::vector<float>& run : runs) {
    run.resize(saved.size());
    in_.read(run.data(), run.size() * sizeof(float));
  }
  merge_dense(config, head, saved, runs);
}

void PieceReader::merge_dense(const TableConfig& config, const DenseHead& head, const Block& saved,
                              const std::vector<std::vector<float>>& runs) {
  const Block mine = dense_block(config, loading_.place.servers, loading_.place.rank);
  const std::uint64_t begin = std::max(mine.begin, saved.begin);
  const std::uint64_t end = std::min(mine.end, saved.end);
  if (begin >= end) return;
  const std::lock_guard lock(loading_.mutex);
  DenseTable::Contents& contents = loading_.dense.at(config.id);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    float* to = i == 0 ? contents.values.data() : contents.state.data() + (i - 1) * contents.values.size();
    std::copy_n(runs[i].data() + (begin - saved.begin), end - begin, to + (begin - mine.begin));
  }
  loading_.found[config.id] += end - begin;
  contents.steps = std::max(contents.steps, head.steps);
  contents.has_values = contents.has_values && head.has_values != 0;
}

NamedBytes PieceReader::read_named() {
  NamedBytes out;
  out.name = read_text();
  const auto size = in_.value<std::uint64_t>();
  if (size > in_.left()) fail("'" + out.name + "' is longer than the file");
  out.bytes.resize(size);
  in_.read(out.bytes.data(), size);
  return out;
}

std::string PieceReader::read_text() {
  const auto length = in_.value<std::uint32_t>();
  if (length > kLongestName) fail("a name of " + std::to_string(length) + " bytes");
  std::string text(length, '\0');
  in_.read(text.data(), text.size());
  return text;
}

struct PieceOfPart {
  std::uint32_t rank;
  std::uint32_t piece;
};

void read_pieces(const std::string& directory, const std::vector<PieceOfPart>& pieces, const FetchFile& fetch,
                 Loading& loading) {
  const Manifest& manifest = loading.manifest;
  work_in_parallel(pieces.size(), [&](std::size_t i) {
    const auto [rank, piece] = pieces[i];
    const std::string path = piece_path(directory, manifest, rank, piece);
    if (fetch) fetch(path);
    PieceReader(path, manifest.parts[rank][piece], loading).read(rank, piece);
    if (fetch) std::filesystem::remove(path);
  });
}

void add_all_of(const std::string& directory, std::uint32_t rank, const Manifest& manifest,
                std::vector<PieceOfPart>& out) {
  if (manifest.parts[rank].empty()) {
    throw Error(ErrorKind::data,
                directory + ": the manifest names no part of server " + std::to_string(rank));
  }
  for (std::uint32_t piece = 0; piece < manifest.parts[rank].size(); ++piece) out.push_back({rank, piece});
}

// The first dense table of which values are missing.
const TableConfig* find_incomplete(const Loading& loading) {
  for (const TableConfig& config : loading.tables) {
    if (config.kind != TableConfig::Kind::dense) continue;
    const Block mine = dense_block(config, loading.place.servers, loading.place.rank);
    const auto found = loading.found.find(config.id);
    if (mine.size() != (found == loading.found.end() ? 0 : found->second)) return &config;
  }
  return nullptr;
}

// Every dense table of this server, without values yet.
void make_room(Loading& loading) {
  for (const TableConfig& config : loading.tables) {
    if (config.kind != TableConfig::Kind::dense) continue;
    DenseTable::Contents empty = loading.set.dense(config.id).contents();
    empty.has_values = true;
    loading.dense.emplace(config.id, std::move(empty));
  }
}

void take_out(Loading& loading, LoadedTables& out) {
  for (auto& [id, contents] : loading.dense) out.tables->dense(id).restore(std::move(contents));
  out.named = std::move(loading.named);
  out.erased = std::move(loading.erased);
}

}  // namespace

LoadedTables load_parts(const std::string& directory, const Manifest& manifest, ServerPlace place,
                        const std::vector<TableConfig>& tables, const FetchFile& fetch) {
  LoadedTables out;
  out.manifest = manifest;
  out.tables = std::make_unique<TableSet>(tables, place);
  Loading loading{manifest, place, tables, *out.tables};
  make_room(loading);
  const auto servers = static_cast<std::uint32_t>(manifest.parts.size());
  std::vector<PieceOfPart> own;
  std::vector<PieceOfPart> others;
  for (std::uint32_t rank = 0; rank < servers; ++rank) {
    // As many servers as before: this one's part holds all that is its own,
    // and the others may be on other hosts.
    if (servers != place.servers || rank == place.rank) {
      add_all_of(directory, rank, manifest, own);
    } else if (!manifest.parts[rank].empty()) {
      others.push_back({rank, 0});
    }
  }
  read_pieces(directory, own, fetch, loading);
  // Unless dense tables were split in another way then: their blocks are in the first pieces.
  if (find_incomplete(loading) != nullptr) read_pieces(directory, others, fetch, loading);
  if (const TableConfig* table = find_incomplete(loading)) {
    throw Error(ErrorKind::data, directory + ": values of table '" + table->name + "' are missing");
  }
  take_out(loading, out);
  out.tables->marks().set_number(manifest.changes.number);
  return out;
}

struct PartAssembler::State {
  std::string name;
  std::vector<TableConfig> tables;
  LoadedTables out;
  Loading loading;
  std::uint32_t added = 0;

  State(ServerPlace place, const std::vector<TableConfig>& configs, std::uint32_t pieces)
      : name("the state of server " + std::to_string(place.rank)),
        tables(configs),
        out{std::make_unique<TableSet>(configs, place), {}, manifest_of(place, pieces)},
        loading{out.manifest, place, tables, *out.tables} {
    make_room(loading);
  }

  static Manifest manifest_of(const ServerPlace& place, std::uint32_t pieces) {
    Manifest manifest;
    manifest.parts.resize(place.servers);
    manifest.parts[place.rank].resize(pieces);
    return manifest;
  }
};

PartAssembler::PartAssembler(ServerPlace place, const std::vector<TableConfig>& tables, std::uint32_t pieces)
    : state_(std::make_unique<State>(place, tables, pieces)) {}

PartAssembler::~PartAssembler() = default;

void PartAssembler::add(std::uint32_t piece, std::uint64_t digest, std::span<const std::byte> bytes) {
  const std::uint32_t rank = state_->loading.place.rank;
  if (piece != state_->added++)
    throw Error(ErrorKind::data, state_->name + ": piece " + std::to_string(piece) + " is not its next");
  PieceReader(state_->name, {bytes.size(), digest}, bytes, state_->loading).read(rank, piece);
}

LoadedTables PartAssembler::finish() {
  if (state_->added != state_->out.manifest.parts[state_->loading.place.rank].size())
    throw Error(ErrorKind::data, state_->name + ": pieces are missing");
  take_out(state_->loading, state_->out);
  return std::move(state_->out);
}

}  // namespace fleetrun::ps
