#include "launcher/host/python_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <memory>

#include "launcher/host/find_program.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), ::free);
  return resolved ? resolved.get() : "";
}

}  // namespace

std::vector<std::string> python_names_to_provide(const std::string& interpreter) {
  std::vector<std::string> names;
  const std::string itself = real_path(interpreter);
  for (const char* name : {"python", "python3"}) {
    const std::string beside = directory_of(interpreter) + "/" + name;
    if (beside != interpreter && real_path(beside) != itself) names.push_back(name);
  }
  return names;
}

PythonDirectory plan_python_directory(const std::string& interpreter, const std::string& log_dir,
                                      const std::string& pod_name) {
  PythonDirectory directory;
  const std::vector<std::string> names = python_names_to_provide(interpreter);
  if (names.empty()) return directory;
  // A colon cannot be part of an entry of PATH.
  const std::string parent = log_dir.find(':') == std::string::npos ? log_dir : "/tmp";
  directory.path = parent + "/.python-" + pod_name;
  for (const std::string& name : names) directory.files.push_back(directory.path + "/" + name);
  return directory;
}

void make_python_directory(const PythonDirectory& directory, const std::string& interpreter) {
  if (directory.path.empty()) return;
  check_errno(::mkdir(directory.path.c_str(), 0700), "mkdir", "making " + directory.path);
  struct statvfs file_system = {};
  const bool noexec =
      ::statvfs(directory.path.c_str(), &file_system) == 0 && (file_system.f_flag & ST_NOEXEC) != 0;
  const std::string script = "#!/bin/sh\nexec " + shell_quoted(interpreter) + " \"$@\"\n";
  for (const std::string& file : directory.files) {
    if (noexec) {
      check_errno(::symlink(interpreter.c_str(), file.c_str()), "symlink", "making " + file);
      continue;
    }
    const UniqueFd fd(open_own(file, O_WRONLY | O_CREAT | O_EXCL, Readers::owner));
    check_errno(fd.value(), "open", "making " + file);
    check_errno(::fchmod(fd.value(), 0700), "fchmod", "making " + file);
    const bool whole =
        ::write(fd.value(), script.data(), script.size()) == static_cast<ssize_t>(script.size());
    check_errno(whole ? 0 : -1, "write", "making " + file);
  }
}

void remove_python_directory(const PythonDirectory& directory) noexcept {
  for (const std::string& file : directory.files) ::unlink(file.c_str());
  if (!directory.path.empty()) ::rmdir(directory.path.c_str());
}

}  // namespace fleetrun::launcher
