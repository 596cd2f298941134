// What travels to hosts that have nothing (--ship): a list of files with their contents' digests, and the
// pieces of those that a host lacks. Values, and their bytes.
//
// A host keeps it below one directory, the store:
//
//   ROOT/launcher-DIGEST/…        fleetrun, what it runs, and libraries that the host may not have
//   ROOT/from/USER@HEAD/PATH      a file that lies at PATH (absolute) on the head
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fleetrun::launcher::ship {

constexpr std::int64_t kSecond = 1'000'000'000;  // in nanoseconds

enum class Kind { directory, file, link };

struct Item {
  Kind kind = Kind::file;
  std::string path;  // below the store's root
  std::uint32_t mode = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::uint64_t digest = 0;  // of a file's content (runtime/base/content_digest)
  std::string target;        // of a link
  bool operator==(const Item&) const = default;
};

struct List {
  std::string prefix;                // "from/USER@HEAD"
  std::vector<std::string> folders;  // that came as a whole: what is no longer in the list goes there, too
  std::vector<Item> items;           // a directory before what is in it
  bool removed = false;              // at the end of the job
  std::string python_home;           // where the interpreter of a virtual environment lies on the head
  std::vector<std::string> module_paths;  // what more is on Python's path there
  bool operator==(const List&) const = default;
};

/// Items by number: the first, and how many follow each other.
using Range = std::pair<std::uint32_t, std::uint32_t>;

/// The bytes of a file, in their order.
struct Piece {
  std::uint32_t item = 0;
  std::string bytes;
  bool operator==(const Piece&) const = default;
};

template <class Archive, class Value>
void fields(Archive& archive, Value& item, const Item*) {
  std::uint8_t kind = static_cast<std::uint8_t>(item.kind);
  archive(kind);
  if constexpr (Archive::reads) item.kind = kind <= 2 ? static_cast<Kind>(kind) : Kind::file;
  archive(item.path, item.mode, item.size, item.mtime_ns, item.digest, item.target);
}

template <class Archive, class Value>
void fields(Archive& archive, Value& list, const List*) {
  archive(list.prefix, list.folders, list.items, list.removed, list.python_home, list.module_paths);
}

template <class Archive, class Value>
void fields(Archive& archive, Value& piece, const Piece*) {
  archive(piece.item, piece.bytes);
}

}  // namespace fleetrun::launcher::ship
