#include "launcher/host/own_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <climits>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

std::string own_program() {
  char path[PATH_MAX];
  if (::access("/proc/self/exe", F_OK) != 0)
    throw Error(ErrorKind::host, "there is no /proc, by which fleetrun finds itself and its processes",
                "mount it: mount -t proc proc /proc");
  const ssize_t length = check_errno(static_cast<int>(::readlink("/proc/self/exe", path, sizeof path)),
                                     "readlink", "finding fleetrun");
  return {path, static_cast<std::size_t>(length)};
}

std::vector<std::string> own_arguments() {
  const UniqueFd fd(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  for (ssize_t count = 0; fd && (count = ::read(fd.value(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  std::vector<std::string> words = split(text, '\0');
  if (!words.empty()) words.erase(words.begin());
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

std::uint64_t raise_open_files() {
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  const rlim_t inherited = files.rlim_cur;
  files.rlim_cur = files.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &files) == 0 ? inherited : 0;
}

void check_null_device() {
  if (::access("/dev/null", R_OK | W_OK) == 0) return;
  throw Error(ErrorKind::host, "there is no /dev/null, from which processes read",
              "mount /dev, or make it: mknod -m 666 /dev/null c 1 3");
}

void check_open_files(std::size_t processes) {
  constexpr std::size_t kOfFleetrun = 18, kOfProcess = 3;  // its log, who shows it, and its port
  rlimit files = {};
  const std::size_t needed = kOfFleetrun + kOfProcess * processes;
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= needed) return;
  throw Error(ErrorKind::host,
              std::to_string(processes) + (processes == 1 ? " process needs " : " processes need ") +
                  std::to_string(needed) + " open files, and " + std::to_string(files.rlim_cur) +
                  " are allowed",
              "raise the limit (ulimit -Hn), or start fewer processes");
}

}  // namespace fleetrun::launcher
