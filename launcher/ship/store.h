// A host's side of --ship: a directory in which the files of a list come to lie as they lie on the head. What
// is there with the same content is kept; a file appears whole or not at all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launcher/ship/ship_list.h"
#include "runtime/base/content_digest.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher::ship {

class Store {
 public:
  /// `root` is there already: fleetrun runs in it.
  explicit Store(std::string root);
  ~Store();  // leaves no half of a file
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Makes directories and links, removes what came before and is no longer in the list, and returns the
  /// files that are to be sent. Throws: Error(host): there is no room for them, something cannot be made.
  std::vector<Range> begin(List list);
  /// The next bytes. Throws: Error(host); Error(data) where a file is not what the list says.
  void take(const Piece& piece);
  /// Everything that begin() asked for is there.
  bool is_whole() const noexcept { return missing_ == 0; }
  /// Remembers what is there, for the next time. Throws: Error(host).
  void finish();

  const std::string& root() const noexcept { return root_; }
  const List& list() const noexcept { return list_; }
  /// Where the head's `path` lies here, if it is here.
  std::string place_of(const std::string& path) const;
  /// Its files that nobody has changed go, with what Python made of them and the directories that are empty
  /// then, and fleetrun itself; nothing, where another job uses the store.
  void remove() noexcept;

 private:
  struct Known {
    std::uint64_t size = 0, digest = 0;
    std::int64_t mtime_ns = 0, ctime_ns = 0;
    bool operator==(const Known&) const = default;
    template <class Archive, class Value>
    friend void fields(Archive& archive, Value& known, const Known*) {
      archive(known.size, known.digest, known.mtime_ns, known.ctime_ns);
    }
  };

  void read_index();
  std::string index_path() const { return root_ + "/" + list_.prefix + ".index"; }
  bool has(const Item& item);
  void make(const Item& item);
  void remove_old();
  void check_room(std::uint64_t bytes) const;
  void place();
  bool is_known(const std::string& path) const;
  bool lock_alone() const noexcept;
  void write_environment() const;

  std::string root_;
  UniqueFd lock_, file_;
  List list_;
  std::map<std::string, Known> known_;
  std::vector<bool> wanted_;
  std::size_t missing_ = 0;
  std::uint32_t item_ = 0;
  std::uint64_t written_ = 0;
  ContentDigest digest_;
  std::string incoming_;
};

}  // namespace fleetrun::launcher::ship
