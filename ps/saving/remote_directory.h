// Saves at a place that is not on this host ("s3://bucket/model", "hdfs:/models/day"): two commands of the
// user copy files there and back, and a directory of this host holds them meanwhile.
//
// What is there is a directory of saved tables (ps/saving/manifest.h) without a previous manifest: pieces
// have names of their own in every save, and the manifest is copied last. So what a save that broke off has
// left is never taken for one, and the save before it stays whole.
#pragma once

#include <cstdint>
#include <string>

namespace fleetrun {
class Environ;
}

namespace fleetrun::ps {

/// Run by bash with the name there as one more argument. Empty: there is none.
struct CopyCommands {
  std::string upload = {};    // gets the file on its standard input
  std::string download = {};  // prints the file

  bool operator==(const CopyCommands&) const = default;
};

/// FLEETRUN_PS_UPLOAD_CMD and FLEETRUN_PS_DOWNLOAD_CMD.
CopyCommands copy_commands_of(const Environ& environ);

/// Threads: all calls may be made from several threads at once.
class RemoteDirectory {
 public:
  /// Makes a directory below $TMPDIR (/tmp), for this user alone. Throws: Error(host).
  RemoteDirectory(std::string name, CopyCommands commands);
  /// Removes it and what is in it.
  ~RemoteDirectory();
  RemoteDirectory(const RemoteDirectory&) = delete;
  RemoteDirectory& operator=(const RemoteDirectory&) = delete;

  /// The directory of this host.
  const std::string& here() const noexcept { return here_; }

  /// Copies the file of this name to the place there, or from there. Throws: Error(data) naming the file
  /// there, with what the command said; Error(config) where there is no command.
  void upload(const std::string& file) const;
  void download(const std::string& file) const;

 private:
  std::string name_;
  CopyCommands commands_;
  std::string here_;
};

/// Throws: Error(config) where nothing copies to the place of this name.
void check_can_upload(const std::string& name, const CopyCommands& commands);

/// For a save there, instead of next_save(): the microseconds since 1970, which no earlier save has.
std::uint64_t next_remote_save();

}  // namespace fleetrun::ps
