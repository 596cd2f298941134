// The directory that one table's cold rows have for themselves:
//
//   BASE/fleetrun-rows-<random>/owner    who it belongs to; that process holds a lock
//                                        (flock) on it as long as it lives
//   BASE/fleetrun-rows-<random>/rows/    the rows
//
// Nobody ever moves into a directory that is there already, so that two tables or two servers cannot share
// one, and a directory that looks like ours but is somebody's else is not touched. One whose owner is dead
// (the lock is free) is worth nothing and is removed by the next server
// of the same user on the same host, or by hand.
#pragma once

#include <string>

#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

class RowDirectory {
 public:
  /// Makes a new one in `base`, which is made when it is not there. `owner` says in a line whose rows these
  /// are. Throws: Error(host) naming the path.
  RowDirectory(const std::string& base, const std::string& owner);
  /// Removes it and all that is in it.
  ~RowDirectory();
  RowDirectory(const RowDirectory&) = delete;
  RowDirectory& operator=(const RowDirectory&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::string rows() const { return path_ + "/rows"; }

 private:
  std::string path_;
  UniqueFd lock_;
};

/// Removes the directories in `base` that dead processes of this user on this host have left.
/// Returns how many.
int remove_leftover_rows(const std::string& base);

}  // namespace fleetrun::ps
