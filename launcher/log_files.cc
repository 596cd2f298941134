#include "launcher/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

[[noreturn]] void refuse(const std::string& what, int error) {
  throw Error(ErrorKind::host, what + ": " + std::generic_category().message(error),
              "choose a directory that you can write to, with --log_dir");
}

void make_directories(const std::string& path) {
  for (std::size_t end = 1; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST)
      refuse("log directory " + path + " cannot be made", errno);
  }
}

/// Opened without blocking, in case somebody put a pipe there, and made an ordinary descriptor afterwards.
UniqueFd open_log(int directory, const std::string& name, bool overwrite, const std::string& shown) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  UniqueFd fd(::openat(directory, name.c_str(), flags, 0600));
  if (!fd) refuse("log " + shown + " cannot be opened", errno);
  struct stat info = {};
  if (::fstat(fd.value(), &info) != 0 || !S_ISREG(info.st_mode))
    refuse("log " + shown + " is not a file", EINVAL);
  if (overwrite && ::ftruncate(fd.value(), 0) != 0) refuse("log " + shown + " cannot be emptied", errno);
  check_errno(::fcntl(fd.value(), F_SETFL, O_APPEND), "fcntl", "opening " + shown);
  return fd;
}

/// The second name is a convenience: where the file system has neither hard nor symbolic links there is none.
void add_alias(int directory, const ProcessSpec& process) {
  if (::linkat(directory, process.log_name.c_str(), directory, process.log_alias.c_str(), 0) == 0) return;
  (void)!::symlinkat(process.log_name.c_str(), directory, process.log_alias.c_str());
}

}  // namespace

std::vector<LogFile> open_log_files(const Plan& plan) {
  make_directories(plan.log_dir);
  const UniqueFd directory(::open(plan.log_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) refuse("log directory " + plan.log_dir_shown + " cannot be opened", errno);
  std::vector<LogFile> logs;
  for (const ProcessSpec& process : plan.processes) {
    LogFile log;
    log.path = plan.log_dir + "/" + process.log_name;
    log.shown = plan.log_dir_shown + "/" + process.log_name;
    log.fd = open_log(directory.value(), process.log_name, plan.log_overwrite, log.shown);
    log.start = std::max<off_t>(::lseek(log.fd.value(), 0, SEEK_END), 0);
    add_alias(directory.value(), process);
    logs.push_back(std::move(log));
  }
  return logs;
}

std::string last_lines(const LogFile& log, std::size_t most_bytes) {
  const UniqueFd fd(::open(log.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return {};
  const off_t end = ::lseek(fd.value(), 0, SEEK_END);
  const off_t begin = std::max(log.start, end - static_cast<off_t>(most_bytes));
  std::string text(static_cast<std::size_t>(std::max<off_t>(end - begin, 0)), '\0');
  const ssize_t got = ::pread(fd.value(), text.data(), text.size(), begin);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const std::size_t line = text.find('\n');
  if (begin > log.start && line != std::string::npos && line + 1 < text.size()) text.erase(0, line + 1);
  return text;
}

}  // namespace fleetrun::launcher
