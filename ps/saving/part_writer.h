// Writes one server's part of a save: its pieces, in parallel, synced.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ps/base/block_file.h"
#include "ps/saving/manifest.h"
#include "ps/saving/table_cut.h"

namespace fleetrun::ps {

/// What a server keeps beside tables, known by its name to who wrote it.
struct NamedBytes {
  std::string name;
  std::vector<std::byte> bytes;

  bool operator==(const NamedBytes&) const = default;
};

/// The pieces of one server's part, one at a time and in memory, for who takes them over a network.
class PartPieces {
 public:
  PartPieces(ServerPlace place, const std::vector<TableConfig>& tables, TableCut cut,
             std::vector<NamedBytes> named);

  std::uint32_t count() const noexcept { return count_; }
  /// Adds the bytes of a piece to `out`. Threads: pieces may be written at once.
  SavedPiece write(std::uint32_t piece, std::vector<std::byte>& out) const;

 private:
  ServerPlace place_;
  std::vector<TableConfig> tables_;
  TableCut cut_;
  std::vector<NamedBytes> named_;
  std::uint32_t count_;
};

/// While it lives, nobody takes its files for left-behind ones.
/// When it goes, those that no manifest names are removed.
class PartWriter {
 public:
  PartWriter(SaveName save, ServerPlace place);
  ~PartWriter();
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  const SaveName& save() const noexcept { return save_; }

  /// Makes the directory, and writes and syncs the pieces and their names. Called once.
  /// Throws: Error(host) naming the file.
  std::vector<SavedPiece> write(const std::vector<TableConfig>& tables, const TableCut& cut,
                                const std::vector<NamedBytes>& named = {});
  /// Throws: Error(host) when somebody has removed a piece; to be called before the manifest is committed.
  void check_still_there() const;

 private:
  SaveName save_;
  ServerPlace place_;
  std::vector<std::unique_ptr<BlockWriter>> pieces_;
};

}  // namespace fleetrun::ps
