// Files that are not on this host: names like hdfs://…, afs:…, s3://…, which a command of the user fetches.
//
// Pure: this says what to run, byte_source runs it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::dataset {

struct RemoteFiles {
  /// Run by bash with the file's name as one more argument; what it prints is the file. Empty or "cat": none.
  std::string download_command = {};
  /// Of a Hadoop file system, read by `hadoop fs -cat` where there is no download command.
  std::string fs_name = {};
  std::string fs_ugi = {};

  bool operator==(const RemoteFiles&) const = default;
};

/// A name with a scheme ("s3://…"), and "hdfs:…" and "afs:…" as Paddle's jobs write them.
bool is_remote(std::string_view file) noexcept;

/// The program and arguments that print `file`; `environment` ("NAME=VALUE") says where Hadoop is
/// (HADOOP_HOME). Throws: Error(config) when nothing was given that could.
std::vector<std::string> download_argv(const RemoteFiles& remote, const std::string& file,
                                       const std::vector<std::string>& environment);

/// The program and arguments for a command that takes the file's name as one more argument.
std::vector<std::string> argv_with_name(const std::string& command, const std::string& file);

/// The command as the user knows it, for messages.
std::string download_text(const RemoteFiles& remote);

}  // namespace fleetrun::dataset
