// The files of a host's directory of logs on their way to the controller: read there in pieces, written here
// below one directory whatever the other side calls them.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/remote/agent_channel.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher::remote {

class LogSender {
 public:
  /// The regular files of `directory` and below (three levels) that were written since `since_ns` of the
  /// clock of files; none where `marker` is there: the controller sees the same directory. Links are not
  /// followed.
  LogSender(const std::string& directory, const std::string& marker, std::int64_t since_ns);

  /// The next piece; nullopt: there is nothing more.
  std::optional<File> next();
  /// Why some could not be read; empty: all were.
  const std::string& error() const noexcept { return error_; }

 private:
  void find(const std::string& below, int depth, std::int64_t since_ns);

  std::string directory_, error_;
  std::vector<std::string> paths_;  // backwards
  UniqueFd file_;
  std::string path_;
};

class LogReceiver {
 public:
  explicit LogReceiver(std::string directory) : directory_(std::move(directory)) {}
  /// Throws: Error(data) for a path that leads elsewhere, Error(host) for what cannot be written.
  void take(const File& file);
  std::size_t files() const noexcept { return files_; }

 private:
  std::string directory_, path_;
  UniqueFd file_;
  std::size_t files_ = 0;
};

/// Relative, of one to four names that are neither empty nor "." or "..". Pure.
bool is_log_path(std::string_view path) noexcept;

}  // namespace fleetrun::launcher::remote
