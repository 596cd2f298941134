#include "ps/saving/saved_values.h"

#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "ps/base/block_file.h"
#include "ps/saving/manifest.h"
#include "ps/saving/piece_format.h"
#include "ps/saving/snapshot.h"
#include "ps/table/row_layout.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

struct Table {
  TableHead head = {};
  SavedValues values = {};
};

class ValueReader {
 public:
  ValueReader(std::string path, const SavedPiece& piece, std::map<std::uint32_t, Table>& tables)
      : path_(std::move(path)), digest_(piece.digest), tables_(tables), in_(path_, piece.bytes) {}

  void read() {
    const auto head = in_.value<PieceHead>();
    if (head.magic != PieceHead::kMagic || head.version != PieceHead().version)
      fail("not a part of saved tables of this version");
    for (std::uint32_t i = 0; i < head.tables; ++i) read_table();
    for (;;) {
      const auto section = in_.value<SectionHead>();
      if (section.kind == SectionHead::end) break;
      read_section(section);
    }
    in_.expect_end(digest_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(ErrorKind::data, path_ + ": " + what); }

  std::string text() {
    std::string text(counted(in_.value<std::uint32_t>(), 1), '\0');
    in_.read(text.data(), text.size());
    return text;
  }
  /// `count` elements that are announced. Throws where the file cannot have them.
  std::size_t counted(std::uint64_t count, std::size_t size) const {
    if (count > in_.left() / size) fail("it announces more than it holds");
    return count;
  }
  void skip(std::uint64_t count, std::size_t size) { in_.view(counted(count, size) * size, copy_); }

  void read_table() {
    const auto head = in_.value<TableHead>();
    Table& table = tables_[head.id];
    table.head = head;
    table.values.name = text();
    table.values.sparse = head.kind == static_cast<std::uint32_t>(TableConfig::Kind::sparse);
    table.values.width = head.width;
  }

  void read_section(const SectionHead& section) {
    if (section.kind == SectionHead::named) {
      text();
      skip(in_.value<std::uint64_t>(), 1);
      return;
    }
    const auto found = tables_.find(section.table);
    if (found == tables_.end()) fail("it has contents of a table that it does not name");
    if (section.kind == SectionHead::rows) return read_rows(found->second);
    if (section.kind == SectionHead::dense) return read_dense(found->second);
    if (section.kind != SectionHead::admission) fail("it has a section that is not of a whole save");
    while (in_.value<std::uint32_t>() != kNoShard) skip(in_.value<std::uint32_t>(), sizeof(std::uint64_t));
  }

  void read_rows(Table& table) {
    const bool is_plain = table.head.accessor == static_cast<std::uint32_t>(Accessor::Kind::plain);
    const std::size_t before = is_plain ? 0 : sizeof(Statistics);
    const std::size_t width = table.values.width * sizeof(float);
    const std::size_t row = sizeof(std::uint64_t) + table.head.floats * sizeof(float);
    if (before + width > table.head.floats * sizeof(float)) fail("its rows are too short");
    while (const auto count = in_.value<std::uint32_t>()) {
      const std::byte* at = in_.view(counted(count, row) * row, copy_);
      for (std::uint32_t i = 0; i < count; ++i, at += row) {
        std::uint64_t key;
        std::memcpy(&key, at, sizeof key);
        table.values.keys.push_back(key);
        const std::size_t size = table.values.values.size();
        table.values.values.resize(size + table.values.width);
        std::memcpy(table.values.values.data() + size, at + sizeof key + before, width);
      }
    }
  }

  void read_dense(Table& table) {
    const auto head = in_.value<DenseHead>();
    const std::size_t size = counted(head.floats, sizeof(float));
    std::vector<float>& values = table.values.values;
    values.resize(table.values.width);
    if (head.has_values == 0 || head.begin > values.size() || size > values.size() - head.begin)
      fail("table '" + table.values.name + "' has no values that belong here");
    in_.read(values.data() + head.begin, size * sizeof(float));
    for (std::uint32_t i = 0; i < table.head.floats; ++i) skip(size, sizeof(float));
  }

  std::string path_;
  std::uint64_t digest_;
  std::map<std::uint32_t, Table>& tables_;
  BlockReader in_;
  std::vector<std::byte> copy_;
};

}  // namespace

std::vector<SavedValues> read_saved_values(const std::string& given) {
  const std::string directory = directory_of_tables(given);
  const std::optional<Manifest> manifest = read_manifest(manifest_path(directory));
  if (!manifest) {
    throw Error(ErrorKind::data, directory + " holds no saved tables",
                "name the directory that fleet.save_persistables wrote");
  }
  if (manifest->mode == SaveMode::changes) {
    throw Error(ErrorKind::config, directory + " holds what has changed since an export, and not all rows",
                "load the exports into servers in their order, and save from there");
  }
  std::map<std::uint32_t, Table> tables;
  for (std::uint32_t rank = 0; rank < manifest->parts.size(); ++rank) {
    const std::vector<SavedPiece>& pieces = manifest->parts[rank];
    if (pieces.empty()) {
      throw Error(ErrorKind::data,
                  directory + ": the manifest names no part of server " + std::to_string(rank));
    }
    for (std::uint32_t piece = 0; piece < pieces.size(); ++piece)
      ValueReader(piece_path(directory, *manifest, rank, piece), pieces[piece], tables).read();
  }
  std::vector<SavedValues> out;
  for (auto& [id, table] : tables) out.push_back(std::move(table.values));
  return out;
}

}  // namespace fleetrun::ps
