// Who may write to a directory decides what its names mean. So LOG_DIR and what lies below it has to belong
// to this user or root, and may be written to by everybody only where the sticky bit keeps names; what
// somebody planted at a name is refused.
#include "launcher/logs/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <system_error>

#include "launcher/logs/output_files.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"

namespace fleetrun::launcher {
namespace {

constexpr const char* kHint = "choose a directory of your own, with --log_dir";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::host, what, kHint);
}

[[noreturn]] void refuse(const std::string& what, int error) {
  throw Error(ErrorKind::host, what + ": " + std::generic_category().message(error),
              "choose a directory that you can write to, with --log_dir");
}

bool is_ours(uid_t owner) noexcept {
  return owner == ::geteuid() || owner == 0;
}

void make_directories(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return;
  if (errno != ENOENT) refuse("log directory " + path + " cannot be made", errno);
  for (std::size_t end = 1; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST)
      refuse("log directory " + path + " cannot be made", errno);
  }
}

void check_directory(int directory, const std::string& shown) {
  struct stat info = {};
  check_errno(::fstat(directory, &info), "fstat", "opening log directory " + shown);
  if (!is_ours(info.st_uid))
    refuse("log directory " + shown + " belongs to user " + std::to_string(info.st_uid) + ", not to user " +
           std::to_string(::geteuid()));
  if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0)
    refuse("log directory " + shown + " can be written to by everybody");
}

/// LOG_DIR may be a symbolic link, if it is one of this user's: people keep logs on other disks.
UniqueFd open_log_directory(const Plan& plan) {
  make_directories(plan.log_dir);
  UniqueFd directory(::open(plan.log_dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat link = {};
  if (!directory && ::lstat(plan.log_dir.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
    if (!is_ours(link.st_uid))
      refuse("log directory " + plan.log_dir_shown + " is a symbolic link of user " +
             std::to_string(link.st_uid));
    directory.reset(::open(plan.log_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory)
      refuse("log directory " + plan.log_dir_shown + " is a symbolic link that cannot be followed", errno);
  }
  if (!directory) refuse("log directory " + plan.log_dir_shown + " cannot be opened", errno);
  check_directory(directory.value(), plan.log_dir_shown);
  return directory;
}

UniqueFd open_below(int parent, const std::string& name, const std::string& shown) {
  if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST)
    refuse("log directory " + shown + " cannot be made", errno);
  UniqueFd directory(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) refuse("log directory " + shown + " cannot be opened", errno);
  check_directory(directory.value(), shown);
  return directory;
}

/// Gives the logs of one attempt their names in LOG_DIR.
class Names {
 public:
  Names(const Plan& plan, int attempt, const LogWarning& warn)
      : plan_(plan),
        attempt_(attempt),
        warn_(warn),
        top_(open_log_directory(plan)),
        pod_(open_below(top_.value(), plan.pod_name, plan.log_dir_shown + "/" + plan.pod_name)),
        below_(plan.pod_name + "/" + std::to_string(attempt)),
        directory_(open_below(pod_.value(), std::to_string(attempt), plan.log_dir_shown + "/" + below_)) {}

  LogFile open(const ProcessSpec& process) {
    const std::string& name = process.log_name;
    LogFile log;
    log.attempt = attempt_;
    log.path = plan_.log_dir + "/" + below_ + "/" + name;
    log.shown = plan_.log_dir_shown + "/" + below_ + "/" + name;
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND;
    log.fd.reset(open_own_at(directory_.value(), name, flags, Readers::owner));
    if (!log.fd && errno == EEXIST) go_on(log, name);
    if (!log.fd) refuse("log " + log.shown + " cannot be made", errno);
    const bool plain = publish(name, name);
    publish(name, process.log_alias);
    if (plain) log.shown = plan_.log_dir_shown + "/" + name;
    if (process.output) open_output(process, attempt_, log);
    return log;
  }

 private:
  /// A host that was lost and is back in the same attempt, because the others went on,
  /// writes where it wrote before.
  void go_on(LogFile& log, const std::string& name) {
    constexpr int kFlags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    UniqueFd fd(::openat(directory_.value(), name.c_str(), kFlags));
    struct stat info = {};
    const bool regular =
        fd && ::fstat(fd.value(), &info) == 0 && S_ISREG(info.st_mode) && is_ours(info.st_uid);
    errno = EEXIST;
    if (!regular) return;
    log.start = info.st_size;
    log.fd = std::move(fd);
  }

  /// Makes `name` in LOG_DIR another name of the attempt's `file`. False: there is no such name.
  bool publish(const std::string& file, const std::string& name) {
    if (name.empty() || linked_ == Linked::not_at_all) return false;
    if (linked_ == Linked::hard &&
        ::linkat(directory_.value(), file.c_str(), top_.value(), name.c_str(), 0) == 0)
      return true;
    const std::string shown = plan_.log_dir_shown + "/" + name;
    try {
      make_way(name, shown);
      return replace(file, name, shown);
    } catch (const Error& error) {
      if (attempt_ == 0) throw;
      warn_(error.what());
      return false;
    }
  }

  /// What is at the name has to be a log or a link to one. A log that has no other name is kept.
  void make_way(const std::string& name, const std::string& shown) {
    struct stat info = {};
    if (::fstatat(top_.value(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (!is_ours(info.st_uid))
      refuse("log " + shown + " belongs to user " + std::to_string(info.st_uid) + " already");
    if (S_ISLNK(info.st_mode) && !leads_to_a_log(name))
      refuse("log " + shown + " is a symbolic link to something else");
    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) refuse("log " + shown + " is not a file");
    if (S_ISREG(info.st_mode) && info.st_nlink == 1 && info.st_size > 0) {
      const std::string kept = name + ".before-" + plan_.pod_name;
      if (::renameat(top_.value(), name.c_str(), top_.value(), kept.c_str()) != 0)
        refuse("log " + shown + " of an earlier run cannot be kept", errno);
    }
  }

  /// "POD/ATTEMPT/NAME", as we make them.
  bool leads_to_a_log(const std::string& name) const {
    char target[512];
    const ssize_t length = ::readlinkat(top_.value(), name.c_str(), target, sizeof target);
    const std::string_view text(target, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    return length > 0 && text.front() != '/' && std::count(text.begin(), text.end(), '/') == 2 &&
           text.find("..") == std::string_view::npos;
  }

  bool replace(const std::string& file, const std::string& name, const std::string& shown) {
    const std::string fresh = "." + name + "." + plan_.pod_name;
    if (!make_link(file, fresh)) {
      linked_ = Linked::not_at_all;
      warn_("there are no links in " + plan_.log_dir_shown + ": the logs are in " + plan_.log_dir_shown +
            "/" + below_);
      return false;
    }
    const bool replaced = ::renameat(top_.value(), fresh.c_str(), top_.value(), name.c_str()) == 0;
    const int error = errno;
    ::unlinkat(top_.value(), fresh.c_str(), 0);  // still there, too, where both were names of one file
    if (replaced) return true;
    refuse("log " + shown + " cannot be replaced", error);
  }

  bool make_link(const std::string& file, const std::string& fresh) {
    ::unlinkat(top_.value(), fresh.c_str(), 0);  // of a launcher that was killed here
    if (linked_ == Linked::hard) {
      if (::linkat(directory_.value(), file.c_str(), top_.value(), fresh.c_str(), 0) == 0) return true;
      linked_ = Linked::symbolic;
    }
    return ::symlinkat((below_ + "/" + file).c_str(), top_.value(), fresh.c_str()) == 0;
  }

  enum class Linked { hard, symbolic, not_at_all };

  const Plan& plan_;
  int attempt_;
  const LogWarning& warn_;
  UniqueFd top_, pod_;
  std::string below_;  // "POD/ATTEMPT"
  UniqueFd directory_;
  Linked linked_ = Linked::hard;
};

/// Where a process that has to be restarted writes when its log cannot be made.
LogFile nowhere(int attempt) {
  LogFile log;
  log.attempt = attempt;
  log.path = log.shown = "/dev/null";
  log.fd.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  return log;
}

}  // namespace

std::vector<LogFile> open_attempt_logs(const Plan& plan, int attempt, std::span<const std::size_t> indices,
                                       const LogWarning& warn) {
  std::vector<LogFile> logs;
  logs.reserve(indices.size());
  try {
    Names names(plan, attempt, warn);
    for (const std::size_t index : indices) logs.push_back(names.open(plan.processes[index]));
  } catch (const Error& error) {
    if (attempt == 0) throw;
    warn(std::string(error.what()) + "; what the processes write in attempt " + std::to_string(attempt) +
         " is lost");
    while (logs.size() < indices.size()) logs.push_back(nowhere(attempt));
  }
  return logs;
}

std::vector<LogFile> open_first_logs(const Plan& plan, const LogWarning& warn) {
  std::vector<std::size_t> indices(plan.processes.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  return open_attempt_logs(plan, 0, indices, warn);
}

std::string attempt_directory(const Plan& plan, int attempt) {
  return plan.log_dir + "/" + plan.pod_name + "/" + std::to_string(attempt);
}

UniqueFd open_pod_directory(const Plan& plan) {
  const UniqueFd top = open_log_directory(plan);
  return open_below(top.value(), plan.pod_name, plan.log_dir_shown + "/" + plan.pod_name);
}

std::string last_lines(const LogFile& log, std::size_t max_bytes) {
  const UniqueFd fd(::open(log.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return {};
  const off_t end = ::lseek(fd.value(), 0, SEEK_END);
  const off_t begin = std::max(log.start, end - static_cast<off_t>(max_bytes));
  std::string text(static_cast<std::size_t>(std::max<off_t>(end - begin, 0)), '\0');
  const ssize_t got = ::pread(fd.value(), text.data(), text.size(), begin);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const std::size_t line = text.find('\n');
  if (begin > log.start && line != std::string::npos && line + 1 < text.size()) text.erase(0, line + 1);
  return text + log.lost.substr(log.lost.size() - std::min(log.lost.size(), max_bytes));
}

}  // namespace fleetrun::launcher
