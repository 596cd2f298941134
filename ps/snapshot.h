// Tables on disk. A save is one part per server and a manifest that names the parts:
//
//   DIRECTORY/part-<save, 16 hex digits>-<rank, 5 digits>     binary, in checksummed blocks (ps/block_file.h)
//   DIRECTORY/manifest                                        text, written last
//
// The manifest decides which save is in a directory: until the new one is renamed into place the old one,
// with its parts, is whole; a directory without a manifest holds no save. Parts:
//
//   "FLTABLES" | version u32 | rank u32 | servers u32 | tables u32 | save u64
//   per table:  id u32 | kind u32 | rule u32 | state floats per value u32 | width u64 | name: length u32,
//   bytes
//     sparse:   { 1 u8 | key u64 | f32[row] }... 0 u8        row = values, state, and for adam its steps
//     (u32) dense:    begin u64 | floats u64 | steps u32 | has values u32 | f32[values] | f32[state]
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ps/table_set.h"

namespace fleetrun::ps {

/// What a manifest says of one part.
struct SavedPart {
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;

  bool operator==(const SavedPart&) const = default;
};

struct Manifest {
  std::uint64_t save = 0;
  /// By rank of the server that wrote it.
  std::vector<SavedPart> parts;

  bool operator==(const Manifest&) const = default;
};

/// A number that no part in the directory has: 1 in a new one, so that equal tables give equal files.
std::uint64_t next_save(const std::string& directory);
/// Writes this server's part, durably. Makes the directory. Throws: Error(host) naming the file.
SavedPart save_part(const std::string& directory, std::uint64_t save, ServerPlace place,
                    const std::vector<TableConfig>& tables, const TableSet& contents);
/// Makes the save the one that load() finds. Throws: Error(host).
void write_manifest(const std::string& directory, const Manifest& manifest, ServerPlace place);
/// Throws: Error(data) naming the file and what is wrong with it.
Manifest read_manifest(const std::string& directory);
/// Removes the parts that the manifest does not name, and nothing else.
void remove_other_parts(const std::string& directory);

/// This server's share of a save by any number of servers, in new tables.
/// Throws: Error(data) naming the file and what disagrees.
std::unique_ptr<TableSet> load_tables(const std::string& directory, const Manifest& manifest,
                                      ServerPlace place, const std::vector<TableConfig>& tables);

}  // namespace fleetrun::ps
