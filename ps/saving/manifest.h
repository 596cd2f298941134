// What is in a directory of saved tables:
//
//   DIRECTORY/part-<generation, 16 hex digits>-<save, 16 hex digits>-<server, 5 digits>-<piece, 3 digits>
//   DIRECTORY/manifest            the newest save, put in place last, by rename
//   DIRECTORY/manifest.previous   the one before it
//
// The manifest decides which save is in a directory: until the new one is in place the old one, with its
// pieces, is whole; a directory without a manifest holds no save. Names of pieces follow from numbers, so
// that no manifest can name a file elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ps/table/accessor.h"
#include "ps/table/change_marks.h"

namespace fleetrun::ps {

/// Throws: Error(config) naming the modes.
SaveMode save_mode_of(std::uint32_t number);

/// Which save: its number is unlike that of any file in the directory;
/// a run's generation grows with each change of its world.
struct SaveName {
  std::string directory;
  std::uint64_t save = 0;
  SaveMode mode = SaveMode::all;
  std::uint64_t generation = 0;
  /// The run of the job (FLEETRUN_RUN), hexadecimal; empty outside one.
  /// Generations of different runs do not compare.
  std::string run = {};
  Changes changes = {};
};

struct SavedPiece {
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;

  bool operator==(const SavedPiece&) const = default;
};

struct Manifest {
  std::uint64_t save = 0;
  SaveMode mode = SaveMode::all;
  std::uint64_t generation = 0;
  std::string run = {};
  /// By rank of the server that wrote them. A server that saves for itself alone names its own,
  /// the others' are empty.
  std::vector<std::vector<SavedPiece>> parts;
  /// Of an export.
  Changes changes = {};

  bool operator==(const Manifest&) const = default;
};

std::string manifest_path(const std::string& directory);
std::string previous_manifest_path(const std::string& directory);
std::string piece_path(const SaveName& save, std::uint32_t rank, std::uint32_t piece);
std::string piece_path(const std::string& directory, const Manifest& manifest, std::uint32_t rank,
                       std::uint32_t piece);

/// A number that no file in the directory has: 1 in a new one, so that equal tables give equal files.
std::uint64_t next_save(const std::string& directory);

/// Throws: Error(data), Error(host), naming the file that a save into the directory would lose: no manifest,
/// that of another format, or one that may not be read. A manifest that is damaged may be replaced.
/// Error(config) for an export, where there is any: who follows takes each of them.
void check_replaceable(const std::string& directory, const Changes& changes);

/// Makes the save the one that is found, and keeps the one before it as the previous one. Several servers may
/// do so for one save in one directory. Throws: Error(host) when it cannot be written; Error(config) when a
/// later world of the same run has saved there.
void commit_manifest(const std::string& directory, const Manifest& manifest, std::uint32_t rank);

/// The manifest in the file `path`; none when there is no such file. Throws: Error(data) naming the file.
std::optional<Manifest> read_manifest(const std::string& path);

/// The same for equal manifests alone: every server that took part in a save has the same one.
std::uint64_t digest_of(const Manifest& manifest);

/// Removes the pieces that neither manifest names and nobody is writing, and nothing else.
void remove_other_pieces(const std::string& directory) noexcept;

}  // namespace fleetrun::ps
