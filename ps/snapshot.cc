#include "ps/snapshot.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <map>
#include <span>

#include "ps/block_file.h"
#include "ps/key_partition.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

constexpr std::array<char, 8> kMagic = {'F', 'L', 'T', 'A', 'B', 'L', 'E', 'S'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kLongestName = 1 << 16;

struct PartHead {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t rank = 0;
  std::uint32_t servers = 0;
  std::uint32_t tables = 0;
  std::uint64_t save = 0;
};
static_assert(sizeof(PartHead) == 32);

struct TableHead {
  std::uint32_t id = 0;
  std::uint32_t kind = 0;
  std::uint32_t rule = 0;
  std::uint32_t state_floats = 0;
  std::uint64_t width = 0;
};
static_assert(sizeof(TableHead) == 24);

struct DenseHead {
  std::uint64_t begin = 0;
  std::uint64_t floats = 0;
  std::uint32_t steps = 0;
  std::uint32_t has_values = 0;
};
static_assert(sizeof(DenseHead) == 24);

TableHead head_of(const TableConfig& config) {
  return {config.id, static_cast<std::uint32_t>(config.kind), static_cast<std::uint32_t>(config.rule.kind),
          static_cast<std::uint32_t>(Updater(config.rule).state_floats(1)), config.width};
}

std::string part_path(const std::string& directory, std::uint64_t save, std::uint32_t rank) {
  std::array<char, 64> name;
  std::snprintf(name.data(), name.size(), "part-%016" PRIx64 "-%05" PRIu32, save, rank);
  return directory + "/" + name.data();
}

void write_floats(BlockWriter& out, std::span<const float> values) {
  out.write(values.data(), values.size_bytes());
}

void write_sparse(BlockWriter& out, const SparseTable& table) {
  for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
    table.visit(shard, [&out](std::uint64_t key, std::span<const float> row) {
      out.value(std::uint8_t{1});
      out.value(key);
      write_floats(out, row);
    });
  }
  out.value(std::uint8_t{0});
}

void write_dense(BlockWriter& out, const DenseTable& table, const Block& block) {
  const DenseTable::Contents contents = table.contents();
  out.value(DenseHead{block.begin, block.size(), contents.steps, contents.has_values ? 1u : 0u});
  write_floats(out, contents.values);
  write_floats(out, contents.state);
}

// Reads one part and keeps what belongs to this server.
class PartLoader {
 public:
  PartLoader(const std::string& path, const SavedPart& part, ServerPlace place)
      : path_(path), part_(part), place_(place), in_(path, part.bytes) {}

  void load(std::uint64_t save, std::uint32_t rank, std::uint32_t servers,
            const std::vector<TableConfig>& tables, TableSet& into,
            std::map<std::uint32_t, DenseTable::Contents>& dense);

 private:
  void check_head(const PartHead& head, const PartHead& wanted) const;
  void check_table(const TableConfig& config);
  void load_sparse(SparseTable& table);
  void load_dense(const TableConfig& config, const Block& saved, DenseTable::Contents& contents);
  [[noreturn]] void fail(const std::string& what) const { throw Error(ErrorKind::data, path_ + ": " + what); }
  void expect(const std::string& what, const std::string& saved, const std::string& wanted) const {
    if (saved != wanted) fail(what + " is " + saved + " in the file, " + wanted + " in this program");
  }

  std::string path_;
  SavedPart part_;
  ServerPlace place_;
  BlockReader in_;
};

void PartLoader::load(std::uint64_t save, std::uint32_t rank, std::uint32_t servers,
                      const std::vector<TableConfig>& tables, TableSet& into,
                      std::map<std::uint32_t, DenseTable::Contents>& dense) {
  PartHead wanted;
  wanted.rank = rank;
  wanted.servers = servers;
  wanted.tables = static_cast<std::uint32_t>(tables.size());
  wanted.save = save;
  check_head(in_.value<PartHead>(), wanted);
  for (const TableConfig& config : tables) {
    check_table(config);
    if (config.kind == TableConfig::Kind::sparse) {
      load_sparse(into.sparse(config.id));
    } else {
      load_dense(config, dense_block(config, servers, rank), dense.at(config.id));
    }
  }
  in_.expect_end(part_.checksum);
}

void PartLoader::check_head(const PartHead& head, const PartHead& wanted) const {
  if (head.magic != wanted.magic) fail("not a part of saved tables");
  expect("the format version", std::to_string(head.version), std::to_string(wanted.version));
  if (head.rank != wanted.rank || head.servers != wanted.servers || head.save != wanted.save) {
    fail("it is not the part that the manifest names");
  }
  expect("the number of tables", std::to_string(head.tables), std::to_string(wanted.tables));
}

void PartLoader::check_table(const TableConfig& config) {
  const auto head = in_.value<TableHead>();
  const auto length = in_.value<std::uint32_t>();
  if (length > kLongestName) fail("a table name of " + std::to_string(length) + " bytes");
  std::string name(length, '\0');
  in_.read(name.data(), name.size());
  expect("the name of table " + std::to_string(config.id), "'" + name + "'", "'" + config.name + "'");
  const TableHead wanted = head_of(config);
  const std::string of = " of table '" + config.name + "'";
  expect("the id" + of, std::to_string(head.id), std::to_string(wanted.id));
  if (head.kind > 1 || head.rule > 3) fail("the kind or rule" + of + " is unknown");
  expect("the kind" + of, std::string(to_string(static_cast<TableConfig::Kind>(head.kind))),
         std::string(to_string(config.kind)));
  expect("the width" + of, std::to_string(head.width), std::to_string(wanted.width));
  expect("the update rule" + of, std::string(to_string(static_cast<UpdateRule::Kind>(head.rule))),
         std::string(to_string(config.rule.kind)));
  expect("the optimizer state" + of, std::to_string(head.state_floats), std::to_string(wanted.state_floats));
}

void PartLoader::load_sparse(SparseTable& table) {
  std::vector<float> row(table.row_floats());
  for (;;) {
    const auto more = in_.value<std::uint8_t>();
    if (more == 0) return;
    if (more != 1) fail("table '" + table.config().name + "' has a row that does not start as one");
    const auto key = in_.value<std::uint64_t>();
    in_.read(row.data(), row.size() * sizeof(float));
    if (server_of(key, place_.servers) == place_.rank) table.insert(key, row);
  }
}

void PartLoader::load_dense(const TableConfig& config, const Block& saved, DenseTable::Contents& contents) {
  const auto head = in_.value<DenseHead>();
  if (head.begin != saved.begin || head.floats != saved.size()) {
    fail("table '" + config.name + "' has values from " + std::to_string(head.begin) + ", " +
         std::to_string(head.floats) + " of them; " + std::to_string(saved.size()) + " from " +
         std::to_string(saved.begin) + " belong here");
  }
  const Block mine = dense_block(config, place_.servers, place_.rank);
  const std::uint64_t begin = std::max(mine.begin, saved.begin);
  const std::uint64_t end = std::min(mine.end, saved.end);
  const std::size_t kinds = contents.values.empty() ? 0 : contents.state.size() / contents.values.size();
  const std::size_t runs = 1 + Updater(config.rule).state_floats(1);
  std::vector<float> run(saved.size());
  for (std::size_t i = 0; i < runs; ++i) {
    in_.read(run.data(), run.size() * sizeof(float));
    if (begin >= end || i > kinds) continue;
    float* to = i == 0 ? contents.values.data() : contents.state.data() + (i - 1) * contents.values.size();
    std::copy(run.begin() + static_cast<std::ptrdiff_t>(begin - saved.begin),
              run.begin() + static_cast<std::ptrdiff_t>(end - saved.begin), to + (begin - mine.begin));
  }
  if (begin >= end) return;
  contents.steps = std::max(contents.steps, head.steps);
  contents.has_values = contents.has_values && head.has_values != 0;
}

}  // namespace

SavedPart save_part(const std::string& directory, std::uint64_t save, ServerPlace place,
                    const std::vector<TableConfig>& tables, const TableSet& contents) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    throw Error(ErrorKind::host, "cannot make the directory " + directory + ": " + error.message(),
                "save to a directory that the servers may write to");
  }
  BlockWriter out(part_path(directory, save, place.rank));
  out.value(
      PartHead{kMagic, kVersion, place.rank, place.servers, static_cast<std::uint32_t>(tables.size()), save});
  for (const TableConfig& config : tables) {
    out.value(head_of(config));
    out.value(static_cast<std::uint32_t>(config.name.size()));
    out.write(config.name.data(), config.name.size());
    if (config.kind == TableConfig::Kind::sparse) {
      write_sparse(out, contents.sparse(config.id));
    } else {
      write_dense(out, contents.dense(config.id), dense_block(config, place.servers, place.rank));
    }
  }
  const BlockWriter::Written written = out.finish();
  return {written.bytes, written.checksum};
}

std::unique_ptr<TableSet> load_tables(const std::string& directory, const Manifest& manifest,
                                      ServerPlace place, const std::vector<TableConfig>& tables) {
  auto out = std::make_unique<TableSet>(tables, place);
  std::map<std::uint32_t, DenseTable::Contents> dense;
  for (const TableConfig& config : tables) {
    if (config.kind != TableConfig::Kind::dense) continue;
    DenseTable::Contents empty = out->dense(config.id).contents();
    empty.has_values = true;
    dense.emplace(config.id, std::move(empty));
  }
  const auto servers = static_cast<std::uint32_t>(manifest.parts.size());
  for (std::uint32_t rank = 0; rank < servers; ++rank) {
    // As many servers as before: this one's part holds all that is its own, and the others may be on other
    // hosts.
    if (servers == place.servers && rank != place.rank) continue;
    PartLoader loader(part_path(directory, manifest.save, rank), manifest.parts[rank], place);
    loader.load(manifest.save, rank, servers, tables, *out, dense);
  }
  for (auto& [id, contents] : dense) out->dense(id).restore(std::move(contents));
  return out;
}

}  // namespace fleetrun::ps
