// The manifest's text:
//
//   fleetrun tables 2
//   save 0000000000000007
//   mode 0
//   epoch 0000000000000000
//   run 0123456789abcdef0123456789abcdef          or - outside a job
//   changes 1764000000000000 1764000060000000     of an export: since, its own number
//   servers 2
//   part 0 pieces 1
//   piece 4096 0123456789abcdef                   bytes, digest
//   part 1 pieces 0
//   end 76543210                                  crc32c of all lines before
#include "ps/saving/manifest.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <span>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "ps/base/block_file.h"
#include "ps/base/directory_sync.h"
#include "runtime/base/content_digest.h"
#include "runtime/base/crc32c.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {
namespace {

constexpr const char* kFirstLine = "fleetrun tables 2\n";
constexpr std::size_t kLongestManifest = std::size_t{64} << 20;
constexpr std::size_t kPieceNameLength = 48;  // part-, 16 digits, -, 16 digits, -, 5 digits, -, 3 digits
constexpr std::uint32_t kMaxServers = 1 << 20;
constexpr std::uint32_t kMaxPieces = 999;

std::string hex(std::uint64_t value, int digits) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%0*" PRIx64, digits, value);
  return text.data();
}

std::string to_text(const Manifest& manifest) {
  std::string text = kFirstLine;
  text += "save " + hex(manifest.save, 16) + "\n";
  text += "mode " + std::to_string(static_cast<std::uint32_t>(manifest.mode)) + "\n";
  text += "epoch " + hex(manifest.generation, 16) + "\n";
  text += "run " + (manifest.run.empty() ? "-" : manifest.run) + "\n";
  if (manifest.changes.is_export())
    text += "changes " + std::to_string(manifest.changes.since) + " " +
            std::to_string(manifest.changes.number) + "\n";
  text += "servers " + std::to_string(manifest.parts.size()) + "\n";
  for (std::size_t rank = 0; rank < manifest.parts.size(); ++rank) {
    text += "part " + std::to_string(rank) + " pieces " + std::to_string(manifest.parts[rank].size()) + "\n";
    for (const SavedPiece& piece : manifest.parts[rank]) {
      text += "piece " + std::to_string(piece.bytes) + " " + hex(piece.digest, 16) + "\n";
    }
  }
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return text + "end " + hex(crc32c(bytes), 8) + "\n";
}

// What the text says, without asking whether it is written as to_text() writes it: who asks writes it again.
Manifest parse(const std::string& text) {
  Manifest out;
  std::istringstream lines(text);
  std::string line;
  std::uint32_t mode = 0;
  std::array<char, 65> run{};
  while (std::getline(lines, line)) {
    SavedPiece piece;
    if (std::sscanf(line.c_str(), "piece %" SCNu64 " %" SCNx64, &piece.bytes, &piece.digest) == 2) {
      if (!out.parts.empty()) out.parts.back().push_back(piece);
    } else if (line.starts_with("part ")) {
      out.parts.emplace_back();
    } else if (std::sscanf(line.c_str(), "run %64s", run.data()) == 1) {
      out.run = run.data() == std::string("-") ? "" : run.data();
    } else {
      std::sscanf(line.c_str(), "save %" SCNx64, &out.save);
      std::sscanf(line.c_str(), "epoch %" SCNx64, &out.generation);
      std::sscanf(line.c_str(), "mode %" SCNu32, &mode);
      std::sscanf(line.c_str(), "changes %" SCNu64 " %" SCNu64, &out.changes.since, &out.changes.number);
    }
  }
  out.mode = static_cast<SaveMode>(mode);
  return out;
}

bool is_sound(const Manifest& manifest) {
  return !manifest.parts.empty() && manifest.parts.size() <= kMaxServers &&
         manifest.mode <= SaveMode::changes &&
         (manifest.mode == SaveMode::changes) == (manifest.changes.since != 0) &&
         std::all_of(manifest.parts.begin(), manifest.parts.end(),
                     [](const auto& pieces) { return pieces.size() <= kMaxPieces; });
}

// A format that this program does not know is worth another sentence than damage.
void check_version(const std::string& text, const std::string& path) {
  unsigned version = 0;
  if (std::sscanf(text.c_str(), "fleetrun tables %6u\n", &version) != 1 || version == 2) return;
  throw Error(ErrorKind::data,
              path + ": the tables are in format " + std::to_string(version) + ", this program reads 2",
              version > 2 ? "load them with the fleetrun that saved them, or a newer one"
                          : "load them with the fleetrun that saved them");
}

struct PieceName {
  std::uint64_t generation = 0;
  std::uint64_t save = 0;
};

std::optional<PieceName> piece_name_of(const std::string& name) {
  PieceName out;
  std::uint32_t rank = 0;
  std::uint32_t piece = 0;
  if (name.size() != kPieceNameLength ||
      std::sscanf(name.c_str(), "part-%16" SCNx64 "-%16" SCNx64 "-%5" SCNu32 "-%3" SCNu32, &out.generation,
                  &out.save, &rank, &piece) != 4) {
    return std::nullopt;
  }
  const std::string again = piece_path({"", out.save, {}, out.generation, {}}, rank, piece).substr(1);
  return again == name ? std::optional(out) : std::nullopt;
}

// Held while it lives; by one at a time, on all hosts that share the directory where the file system can.
UniqueFd lock_directory(const std::string& directory) {
  UniqueFd file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  check_errno(file.value(), "open", directory);
  while (::flock(file.value(), LOCK_EX) == -1 && errno == EINTR) {
  }
  return file;
}

void check_generation(const std::string& directory, const Manifest& mine, const Manifest& there) {
  if (mine.run != there.run || mine.generation >= there.generation) return;
  throw Error(ErrorKind::config,
              directory + " holds a save of the job's world " + std::to_string(there.generation) +
                  "; this server is of world " + std::to_string(mine.generation),
              "nothing is lost: the newer world continues");
}

// Removes a file that nobody has locked: its writer holds the lock until the save is complete.
void remove_left_behind(const std::string& path) noexcept {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file && ::flock(file.value(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
}

}  // namespace

SaveMode save_mode_of(std::uint32_t number) {
  if (number < static_cast<std::uint32_t>(SaveMode::changes)) return static_cast<SaveMode>(number);
  throw Error(ErrorKind::config, "there is no save mode " + std::to_string(number),
              "0 saves all, 1 a delta, 2 a base, 3 a checkpoint");
}

std::string manifest_path(const std::string& directory) {
  return directory + "/manifest";
}

std::string previous_manifest_path(const std::string& directory) {
  return directory + "/manifest.previous";
}

std::string piece_path(const SaveName& save, std::uint32_t rank, std::uint32_t piece) {
  std::array<char, 80> name;
  std::snprintf(name.data(), name.size(), "/part-%016" PRIx64 "-%016" PRIx64 "-%05" PRIu32 "-%03" PRIu32,
                save.generation, save.save, rank, piece);
  return save.directory + name.data();
}

std::string piece_path(const std::string& directory, const Manifest& manifest, std::uint32_t rank,
                       std::uint32_t piece) {
  return piece_path({directory, manifest.save, manifest.mode, manifest.generation, {}}, rank, piece);
}

std::uint64_t next_save(const std::string& directory) {
  std::uint64_t last = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const auto name = piece_name_of(entry.path().filename().string());
    if (name) last = std::max(last, name->save);
  }
  return last + 1;
}

void check_replaceable(const std::string& directory, const Changes& changes) {
  const std::string path = manifest_path(directory);
  const auto text = read_small_file(path, kLongestManifest);
  if (!text) return;
  if (changes.is_export())
    throw Error(ErrorKind::config, printable(directory) + " has a save already",
                "each export needs a directory of its own");
  check_version(*text, path);
  const std::string_view first = kFirstLine;
  if (text->starts_with(first.substr(0, text->size()))) return;
  throw Error(ErrorKind::data, printable(path) + ": it is no manifest of a save, and a save would replace it",
              "save to a directory of its own, or take that file away");
}

void commit_manifest(const std::string& directory, const Manifest& manifest, std::uint32_t rank) {
  const UniqueFd lock = lock_directory(directory);
  // The names carry the rank: servers on different hosts may write the same manifest at the same time.
  const std::string suffix = "-" + std::to_string(rank) + ".tmp";
  const std::string path = manifest_path(directory);
  const std::string previous = previous_manifest_path(directory);
  std::optional<Manifest> there;
  try {
    there = read_manifest(path);
  } catch (const Error&) {
    // Damaged: the previous one stays the one to fall back to.
  }
  if (there && *there == manifest) return;
  if (there) {
    check_generation(directory, manifest, *there);
    write_file_atomically(previous, previous + suffix, to_text(*there));
  }
  write_file_atomically(path, path + suffix, to_text(manifest));
}

std::optional<Manifest> read_manifest(const std::string& path) {
  const std::optional<std::string> text = read_small_file(path, kLongestManifest);
  if (!text) return std::nullopt;
  check_version(*text, path);
  Manifest manifest = parse(*text);
  // Written again it must give the same bytes, its checksum among them.
  if (!is_sound(manifest) || to_text(manifest) != *text) {
    throw Error(ErrorKind::data, path + ": the manifest is damaged");
  }
  return manifest;
}

std::uint64_t digest_of(const Manifest& manifest) {
  const std::string text = to_text(manifest);
  ContentDigest digest;
  digest.add(std::as_bytes(std::span(text.data(), text.size())));
  return digest.value();
}

void remove_other_pieces(const std::string& directory) noexcept {
  try {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> kept;
    for (const std::string& path : {manifest_path(directory), previous_manifest_path(directory)}) {
      // A damaged manifest names pieces that cannot be known: then none is removed.
      if (const auto manifest = read_manifest(path)) kept.emplace_back(manifest->generation, manifest->save);
    }
    // Somebody took the newest manifest away: its pieces may still be wanted.
    if (kept.size() == 1 && !read_manifest(manifest_path(directory))) return;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const auto name = piece_name_of(entry.path().filename().string());
      if (!name || std::find(kept.begin(), kept.end(), std::pair(name->generation, name->save)) != kept.end())
        continue;
      remove_left_behind(entry.path().string());
    }
  } catch (const std::exception&) {
    // What is left behind costs space, no correctness; the next save tries again.
  }
}

}  // namespace fleetrun::ps
