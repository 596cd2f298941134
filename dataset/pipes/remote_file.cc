#include "dataset/pipes/remote_file.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

bool has_download_command(const RemoteFiles& remote) noexcept {
  return !remote.download_command.empty() && remote.download_command != "cat";
}

std::string hadoop_program(const std::vector<std::string>& environment) {
  constexpr std::string_view home = "HADOOP_HOME=";
  for (const std::string& variable : environment)
    if (variable.starts_with(home) && variable.size() > home.size())
      return variable.substr(home.size()) + "/bin/hadoop";
  return "hadoop";
}

}  // namespace

bool is_remote(std::string_view file) noexcept {
  if (file.starts_with("hdfs:") || file.starts_with("afs:")) return true;
  const std::size_t end = file.find("://");
  if (end == std::string_view::npos || end == 0) return false;
  return std::all_of(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(end), [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '+' || byte == '-' || byte == '.';
  });
}

std::vector<std::string> download_argv(const RemoteFiles& remote, const std::string& file,
                                       const std::vector<std::string>& environment) {
  if (has_download_command(remote)) return argv_with_name(remote.download_command, file);
  if (remote.fs_name.empty())
    throw Error(ErrorKind::config,
                printable(file) + " is not a file of this host, and there is no command to fetch it",
                "give the dataset download_cmd=COMMAND, which gets the name and prints the file, or fs_name "
                "and fs_ugi for "
                "hadoop");
  return {hadoop_program(environment),       "fs",   "-D", "fs.default.name=" + remote.fs_name, "-D",
          "hadoop.job.ugi=" + remote.fs_ugi, "-cat", file};
}

std::vector<std::string> argv_with_name(const std::string& command, const std::string& file) {
  return {"bash", "-o", "pipefail", "-c", command + " \"$1\"", "fleetrun-copy", file};
}

std::string download_text(const RemoteFiles& remote) {
  return has_download_command(remote) ? remote.download_command : "hadoop fs -cat";
}

}  // namespace fleetrun::dataset
