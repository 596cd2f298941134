// Reads pieces of a save into tables, each server its own rows and values, whoever wrote them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ps/base/block_file.h"
#include "ps/saving/manifest.h"
#include "ps/saving/part_writer.h"
#include "ps/table/table_set.h"

namespace fleetrun::ps {

/// This server's share of a save.
struct LoadedTables {
  std::unique_ptr<TableSet> tables;
  /// What this server, and no other, kept beside them; nothing when the save is of another number of servers.
  std::vector<NamedBytes> named;
  Manifest manifest;
  /// Of SaveMode::changes: by table the keys whose rows have gone.
  std::map<std::uint32_t, std::vector<std::uint64_t>> erased = {};
  /// What was wrong with a newer save that could not be taken; empty when there was none.
  std::string fallen_back = {};
};

/// Makes a file of the directory be there before it is read; afterwards it is removed.
using FetchFile = std::function<void(const std::string& path)>;

/// The save that `manifest` names. Reads the pieces in parallel. Throws what `fetch` throws, too.
/// Throws: Error(data) naming the file and what is wrong with it, or what in it disagrees with `tables`.
LoadedTables load_parts(const std::string& directory, const Manifest& manifest, ServerPlace place,
                        const std::vector<TableConfig>& tables, const FetchFile& fetch = {});

/// Takes the pieces that PartPieces has written, one after the other.
class PartAssembler {
 public:
  PartAssembler(ServerPlace place, const std::vector<TableConfig>& tables, std::uint32_t pieces);
  ~PartAssembler();
  PartAssembler(const PartAssembler&) = delete;
  PartAssembler& operator=(const PartAssembler&) = delete;

  /// Throws: Error(data) for bytes that are not that piece of this server.
  void add(std::uint32_t piece, std::uint64_t digest, std::span<const std::byte> bytes);
  /// Throws: Error(data) where a piece is missing.
  LoadedTables finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::ps
