#include "launcher/host/run_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "launcher/host/resource_usage.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxBytes = 16384;  // of an entry
constexpr const char* kSuffix = ".json";
constexpr std::string_view kSecret = ".secret";
constexpr std::chrono::seconds kYoung{60};  // a secret that its launcher may be about to lock

std::string reason(int error) {
  return std::generic_category().message(error);
}

std::uint64_t own_pid_namespace() {
  struct stat info = {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

std::optional<JobEntry> entry_from(const std::string& text) {
  try {
    const Json json = parse_json<Json>(text);
    JobEntry entry;
    if (json.at("schema").get<int>() != 1) return std::nullopt;
    entry.job_id = json.at("job_id").get<std::string>();
    entry.pod = json.at("pod").get<std::string>();
    entry.mode = json.at("mode").get<std::string>();
    entry.pid = json.at("pid").get<pid_t>();
    entry.start_ticks = json.at("start_ticks").get<std::uint64_t>();
    entry.pid_namespace = json.at("pid_namespace").get<std::uint64_t>();
    entry.began_at = json.at("began_at").get<std::int64_t>();
    entry.processes = json.at("processes").get<int>();
    entry.log_dir = json.at("log_dir").get<std::string>();
    entry.launch_log = json.at("launch_log").get<std::string>();
    entry.metrics = json.at("metrics").get<std::string>();
    entry.detached = json.at("detached").get<bool>();
    return entry;
  } catch (const Json::exception&) {
    return std::nullopt;  // written by another version, or by nobody we know
  }
}

std::string read_entry(int directory, const std::string& name) {
  const UniqueFd fd(
      ::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) return {};
  std::string text(kMaxBytes, '\0');
  const ssize_t size = ::read(fd.value(), text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return text;
}

/// Whether the fleetrun of `entry` is gone for certain.
bool is_stale(const JobEntry& entry, std::uint64_t pid_namespace, const std::string& proc) {
  if (entry.pid_namespace != pid_namespace) {
    const int error = connect_to(entry).error;
    return error == ECONNREFUSED || error == ENOENT;
  }
  return start_ticks_of(entry.pid, proc) != entry.start_ticks;
}

void list_directory(const std::string& path, const std::string& proc, std::vector<JobEntry>& jobs) {
  std::string why;
  const auto directory = open_private_directory(path, false, why);
  if (!directory) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> names(::fdopendir(::dup(directory->value())), ::closedir);
  if (!names) return;
  const std::uint64_t pid_namespace = own_pid_namespace();
  while (const dirent* item = ::readdir(names.get())) {
    const std::string file = item->d_name;
    if (!file.ends_with(kSuffix) || file.starts_with(".")) continue;
    auto entry = entry_from(read_entry(directory->value(), file));
    if (!entry) continue;
    entry->directory = path;
    entry->name = file.substr(0, file.size() - std::string_view(kSuffix).size());
    if (is_stale(*entry, pid_namespace, proc)) {
      ::unlinkat(directory->value(), file.c_str(), 0);
      ::unlinkat(directory->value(), (entry->name + ".sock").c_str(), 0);
      ::unlinkat(directory->value(), (entry->name + std::string(kSecret)).c_str(), 0);
      remove_metrics(directory->value(), entry->name);
    } else {
      jobs.push_back(std::move(*entry));
    }
  }
  remove_abandoned_secrets(directory->value());
}

std::string listed(const std::vector<JobEntry>& jobs) {
  std::string text;
  for (const JobEntry& job : jobs)
    text += "\n  " + printable(job.job_id) + " (pod " + printable(job.pod) +
            "): " + std::to_string(job.processes) + (job.processes == 1 ? " process" : " processes") +
            ", pid " + std::to_string(job.pid) + ", logs in " + printable(job.log_dir);
  return text;
}

}  // namespace

std::string to_json(const JobEntry& entry) {
  const Json json = {{"schema", 1},
                     {"job_id", entry.job_id},
                     {"pod", entry.pod},
                     {"mode", entry.mode},
                     {"pid", entry.pid},
                     {"start_ticks", entry.start_ticks},
                     {"pid_namespace", entry.pid_namespace},
                     {"began_at", entry.began_at},
                     {"processes", entry.processes},
                     {"log_dir", entry.log_dir},
                     {"launch_log", entry.launch_log},
                     {"metrics", entry.metrics},
                     {"detached", entry.detached}};
  return json_text(json) + "\n";
}

std::string metrics_file_name(std::string_view pod, int rank) {
  return std::string(pod) + ".server." + std::to_string(rank) + ".figures";
}

void remove_metrics(int directory, const std::string& pod) noexcept {
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> names(::fdopendir(copy), ::closedir);
  if (!names) return;
  while (const dirent* item = ::readdir(names.get())) {
    const std::string_view file = item->d_name;
    if (file.starts_with(pod + ".server.") && file.find(".figures") != file.npos)
      ::unlinkat(directory, item->d_name, 0);
  }
}

void remove_abandoned_secrets(int directory) noexcept {
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> names(::fdopendir(copy), ::closedir);
  if (!names) return;
  const std::time_t young = std::time(nullptr) - kYoung.count();
  while (const dirent* item = ::readdir(names.get())) {
    const std::string_view file = item->d_name;
    if (!file.ends_with(kSecret)) continue;
    const std::string entry = std::string(file.substr(0, file.size() - kSecret.size())) + kSuffix;
    if (::faccessat(directory, entry.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) continue;
    const UniqueFd secret(::openat(directory, item->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info = {};
    if (secret && ::fstat(secret.value(), &info) == 0 && info.st_mtime < young &&
        ::flock(secret.value(), LOCK_EX | LOCK_NB) == 0)
      ::unlinkat(directory, item->d_name, 0);
  }
}

std::vector<std::string> run_directories(const Environ& environment, uid_t uid) {
  if (const std::string* chosen = environment.find("FLEETRUN_RUN_DIR"); chosen && chosen->starts_with("/"))
    return {*chosen};
  std::vector<std::string> directories;
  const std::string* runtime = environment.find("XDG_RUNTIME_DIR");
  if (runtime && runtime->starts_with("/")) directories.push_back(*runtime + "/fleetrun");
  const std::string usual = "/run/user/" + std::to_string(uid) + "/fleetrun";
  directories.push_back("/tmp/fleetrun-" + std::to_string(uid));
  // A job of the login session is found by a shell without its variable, too.
  if (std::find(directories.begin(), directories.end(), usual) == directories.end())
    directories.push_back(usual);
  return directories;
}

std::optional<UniqueFd> open_private_directory(const std::string& path, bool make, std::string& why) {
  if (make && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    why = path + " cannot be made: " + reason(errno);
    return std::nullopt;
  }
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info = {};
  if (!fd || ::fstat(fd.value(), &info) != 0) {
    why = path + " cannot be opened: " + reason(errno);
    return std::nullopt;
  }
  if (info.st_uid != ::geteuid()) {
    why = path + " belongs to another user";
    return std::nullopt;
  }
  // Somebody else's files may lie there, in /tmp for one: those who use them keep it.
  std::error_code error;
  if ((info.st_mode & 077) != 0 &&
      (!std::filesystem::is_empty(path, error) || error || ::fchmod(fd.value(), 0700) != 0)) {
    why = path + " is open to other users, and not empty";
    return std::nullopt;
  }
  return fd;
}

std::optional<PrivateDirectory> first_private_directory(const std::vector<std::string>& directories,
                                                        std::string& why) {
  std::vector<std::string> reasons;
  for (const std::string& path : directories) {
    std::string why_not;
    if (auto opened = open_private_directory(path, true, why_not))
      return PrivateDirectory{path, std::move(*opened)};
    reasons.push_back(std::move(why_not));
  }
  why = reasons.empty() ? "there is no directory for it" : join(reasons, "; ");
  return std::nullopt;
}

RunEntry::RunEntry(const std::vector<std::string>& directories, JobEntry entry,
                   const std::function<void(const RunEntry&)>& before) {
  std::string why;
  auto directory = first_private_directory(directories, why);
  if (!directory) throw Error(ErrorKind::host, why);
  directory_ = std::move(directory->opened);
  entry.directory = directory->path;
  entry.pid = ::getpid();
  entry.start_ticks = start_ticks_of(entry.pid).value_or(0);
  entry.pid_namespace = own_pid_namespace();
  entry.name = entry.pod;
  if (::faccessat(directory_.value(), (entry.name + kSuffix).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
    entry.name +=
        "." + std::to_string(entry.pid);  // another job's, or a stale one that nobody has cleared yet
  entry_ = std::move(entry);
  // An exception leaves no destructor behind that would clear up.
  try {
    if (before) before(*this);
    write();
  } catch (...) {
    remove();
    throw;
  }
}

RunEntry& RunEntry::operator=(RunEntry&& other) noexcept {
  if (this == &other) return *this;
  remove();
  directory_ = std::move(other.directory_);
  entry_ = std::move(other.entry_);
  return *this;
}

void RunEntry::write() const {
  const std::string text = to_json(entry_);
  const std::string next = "." + entry_.name + ".next", name = entry_.name + kSuffix;
  const UniqueFd file(open_own_at(directory_.value(), next, O_WRONLY | O_CREAT | O_TRUNC, Readers::owner));
  if (!file || ::write(file.value(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::renameat(directory_.value(), next.c_str(), directory_.value(), name.c_str()) != 0) {
    const int error = errno;
    ::unlinkat(directory_.value(), next.c_str(), 0);
    throw Error(ErrorKind::host, entry_.directory + "/" + name + " cannot be written: " + reason(error));
  }
}

ControlConnection connect_to(const JobEntry& entry) {
  const UniqueFd directory(::open(entry.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  ControlConnection connection{UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), 0};
  check_errno(connection.socket.value(), "socket", "asking job " + printable(entry.job_id));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // Through the descriptor, since the directory's own path may be longer than an address.
  const std::string path = "/proc/self/fd/" + std::to_string(directory.value()) + "/" + entry.name + ".sock";
  if (path.size() >= sizeof address.sun_path) {
    connection.error = ENAMETOOLONG;
    return connection;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(connection.socket.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    connection.error = errno;
  return connection;
}

void RunEntry::remove() noexcept {
  if (!directory_) return;
  if (!entry_.name.empty()) {
    ::unlinkat(directory_.value(), (entry_.name + kSuffix).c_str(), 0);
    ::unlinkat(directory_.value(), (entry_.name + ".sock").c_str(), 0);
  }
  directory_.reset();
}

std::vector<JobEntry> list_jobs(const std::vector<std::string>& directories, const std::string& proc) {
  std::vector<JobEntry> jobs;
  for (const std::string& directory : directories) list_directory(directory, proc, jobs);
  std::sort(jobs.begin(), jobs.end(), [](const JobEntry& a, const JobEntry& b) {
    return std::tie(a.began_at, a.pod) < std::tie(b.began_at, b.pod);
  });
  return jobs;
}

JobEntry select_job(const std::vector<JobEntry>& jobs, const std::optional<std::string>& name) {
  if (jobs.empty())
    throw Error(ErrorKind::usage,
                "no job of this user runs on this host" + (name ? ": " + printable(*name) : ""),
                "a job that has ended is described by its log directory");
  std::vector<JobEntry> found;
  for (const JobEntry& job : jobs) {
    if (name && *name == job.pod) return job;
    if (!name || *name == job.job_id) found.push_back(job);
  }
  if (found.size() == 1) return found.front();
  if (found.empty())
    throw Error(ErrorKind::usage, "no job is called " + printable(*name) + "; these run:" + listed(jobs),
                "name one by its pod or its job id");
  throw Error(ErrorKind::usage,
              std::to_string(found.size()) + " jobs " + (name ? "are called " + printable(*name) : "run") +
                  ", and nothing was done:" + listed(found),
              "name one by its pod, for example " + found.back().pod);
}

}  // namespace fleetrun::launcher
