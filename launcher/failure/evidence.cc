// What cannot be read is not evidence: every reader here answers with nothing instead of failing.
#include "launcher/failure/evidence.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "launcher/logs/log_tail.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 60;  // v1 writes a number beyond any memory
constexpr std::uint64_t kNoLineBelow = 4096;    // a file system with less room than this takes no line
constexpr std::int64_t kStale = 2'000'000'000;  // ns after which a kill that nobody took was somebody else's

std::optional<std::string> read_small(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return std::nullopt;
  std::string text;
  char block[16384];
  for (ssize_t got; (got = ::read(fd.value(), block, sizeof block)) > 0;)
    text.append(block, static_cast<std::size_t>(got));
  return text;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

/// The number behind `key` and a blank, at the beginning of a line.
std::optional<std::uint64_t> keyed_number(std::string_view text, std::string_view key) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return number_in(line.substr(key.size() + 1));
    begin += line.size() + 1;
  }
  return std::nullopt;
}

/// A number of bytes in a file of a cgroup; nothing for "max" and for v1's way to say it.
std::optional<std::uint64_t> bytes_in(const std::string& path) {
  const auto text = read_small(path);
  const auto value = text ? number_in(*text) : std::nullopt;
  return value && *value < kUnlimited ? value : std::nullopt;
}

struct CgroupPaths {
  std::optional<std::string> memory_v1, unified;
};

/// "4:memory:/a/b" and "0::/c": where a process is in the hierarchies.
CgroupPaths parse_cgroups(std::string_view text) {
  CgroupPaths paths;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
    begin += line.size() + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    if (line.starts_with("0::")) paths.unified = line.substr(3);
    if (controllers.find(",memory,") != std::string::npos) paths.memory_v1 = line.substr(second + 1);
  }
  return paths;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

constexpr const char* counter_file(int version) {
  return version == 1 ? "/memory.oom_control" : "/memory.events";
}

/// core_pattern as a pattern for glob(): what cannot be known of a dead process becomes '*'.
std::string core_glob(std::string_view pattern, const Death& death) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case '%':
        out += '%';
        break;
      case 'p':
      case 'P':
        out += std::to_string(death.pid);
        break;
      case 's':
        out += std::to_string(death.reason.code);
        break;
      default:
        out += '*';
    }
  }
  return out;
}

std::string existing_core(const std::string& pattern) {
  glob_t found = {};
  std::string path;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0 && found.gl_pathc > 0)
    path = found.gl_pathv[found.gl_pathc - 1];
  ::globfree(&found);
  return path;
}

/// The core file where it can be found, "handed to PROGRAM" for a pipe, or nothing.
std::string find_core(const MachineRoots& roots, const Death& death) {
  auto pattern = read_small(roots.proc + "/sys/kernel/core_pattern");
  if (!pattern) return {};
  while (!pattern->empty() && (pattern->back() == '\n' || pattern->back() == ' ')) pattern->pop_back();
  if (pattern->starts_with("|")) return "handed to " + pattern->substr(1, pattern->find(' ') - 1);
  std::string wanted = core_glob(*pattern, death);
  if (!wanted.starts_with("/")) wanted = death.cwd + "/" + wanted;
  const std::string with_pid = wanted + "." + std::to_string(death.pid);  // core_uses_pid
  const std::string path = existing_core(with_pid);
  return path.empty() ? existing_core(wanted) : path;
}

/// A SIGKILL that fleetrun did not send.
bool is_foreign_kill(const Death& death) {
  return death.reason.kind == ExitReason::Kind::signaled && death.reason.code == SIGKILL &&
         death.sent_signal != SIGKILL;
}

std::optional<std::uint64_t> limit_of(__rlimit_resource_t resource, bool hard) {
  rlimit limit = {};
  if (::getrlimit(resource, &limit) != 0) return std::nullopt;
  const rlim_t value = hard ? limit.rlim_max : limit.rlim_cur;
  return value == RLIM_INFINITY ? std::nullopt : std::optional<std::uint64_t>(value);
}

/// What belongs to one signal and no other.
void add_signal_facts(const MachineRoots& roots, const Death& death, Evidence& evidence) {
  if (death.reason.kind != ExitReason::Kind::signaled) return;
  const int number = death.reason.code;
  struct statvfs space = {};
  if (number == SIGBUS && ::statvfs(roots.shared_memory.c_str(), &space) == 0) {
    evidence.shared_memory_total = std::uint64_t{space.f_blocks} * space.f_frsize;
    evidence.shared_memory_available = std::uint64_t{space.f_bavail} * space.f_frsize;
  }
  if (number == SIGXFSZ) evidence.file_size_limit = limit_of(RLIMIT_FSIZE, false);
  if (number == SIGXCPU) evidence.cpu_seconds_limit = limit_of(RLIMIT_CPU, false);
  if (number == SIGKILL) evidence.cpu_seconds_limit = limit_of(RLIMIT_CPU, true);
  if (death.reason.core_dumped) evidence.core = find_core(roots, death);
}

/// What kept the log from growing, where the process failed and nothing more could be written there: the
/// limit of a file's size, or its device.
void add_log_device(const Death& death, Evidence& evidence) {
  struct stat log = {};
  const auto limit = limit_of(RLIMIT_FSIZE, false);
  if (death.reason.kind == ExitReason::Kind::exited && limit && ::stat(death.log_path.c_str(), &log) == 0 &&
      static_cast<std::uint64_t>(log.st_size) >= *limit)
    evidence.file_size_limit = limit;
  struct statvfs space = {};
  if (death.reason.ok() || ::statvfs(death.log_path.c_str(), &space) != 0) return;
  const std::uint64_t available = std::uint64_t{space.f_bavail} * space.f_frsize;
  if (available >= kNoLineBelow) return;
  evidence.log_device_total = std::uint64_t{space.f_blocks} * space.f_frsize;
  evidence.log_device_available = available;
}

}  // namespace

/// The directory of cgroup `path`. In a container the path may be the host's while the container's own group
/// is mounted as the root.
std::string EvidenceCollector::directory_of(const Home& home) const {
  std::string root = roots_.cgroup;
  if (home.version == 1)
    root += "/memory";
  else if (::access((root + "/unified/cgroup.procs").c_str(), F_OK) == 0)
    root += "/unified";
  return home.path == "/" ? root : root + home.path;
}

/// The group in which the memory of `pid` is accounted for: its own, or the nearest above it that counts.
std::optional<EvidenceCollector::Home> EvidenceCollector::home_of(const std::string& pid) const {
  const auto text = read_small(roots_.proc + "/" + pid + "/cgroup");
  if (!text) return std::nullopt;
  const CgroupPaths paths = parse_cgroups(*text);
  for (const int version : {1, 2}) {
    const auto& path = version == 1 ? paths.memory_v1 : paths.unified;
    if (!path) continue;
    for (Home home{*path, version};; home.path = parent_of(home.path)) {
      if (::access((directory_of(home) + counter_file(version)).c_str(), R_OK) == 0) return home;
      if (home.path == "/") break;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> EvidenceCollector::count_kills(const Home& home) const {
  const auto text = read_small(directory_of(home) + counter_file(home.version));
  return text ? keyed_number(*text, "oom_kill") : std::nullopt;
}

void EvidenceCollector::begin() {
  home_ = home_of("self");
  if (home_) counter_of(*home_);
  if (const auto text = read_small(roots_.proc + "/vmstat"))
    machine_kills_before_ = keyed_number(*text, "oom_kill").value_or(0);
}

EvidenceCollector::Counter& EvidenceCollector::counter_of(const Home& home) {
  const std::string key = std::to_string(home.version) + home.path;
  const auto known = counters_.find(key);
  if (known != counters_.end()) return known->second;
  return counters_[key] = Counter{.before = count_kills(home).value_or(0)};
}

std::optional<EvidenceCollector::Home> EvidenceCollector::home_of_process(std::size_t index) const {
  const auto own = homes_.find(index);
  return own != homes_.end() ? own->second : home_;
}

void EvidenceCollector::note(const Death& death) {
  noted_kills_.erase(death.index);
  const auto home = home_of_process(death.index);
  if (home && is_foreign_kill(death)) noted_kills_[death.index] = take_kills(*home, death);
}

void EvidenceCollector::look(std::size_t index, pid_t pid) {
  const auto home = home_of(std::to_string(pid));
  if (!home) return;  // it has ended
  // Every process that is ending is in the root group of cgroup v1:
  // tests/unit/launcher/failure/evidence_test.cc.
  if (home->version == 1 && home->path == "/") return;
  if (home == home_) {
    homes_.erase(index);
    return;
  }
  counter_of(*home);
  homes_[index] = *home;
}

/// The kills that may be this death's. One killed by SIGKILL takes one of them; for others they stay. A kill
/// that nobody took for a while was of a process that is not ours.
std::uint64_t EvidenceCollector::take_kills(const Home& home, const Death& death) {
  Counter& counter = counter_of(home);
  const std::uint64_t now = std::max(count_kills(home).value_or(counter.before), counter.before);
  const std::uint64_t since = now - counter.before;
  if (since == counter.seen && death.at - counter.seen_at > kStale) counter.taken = since;
  if (since > counter.seen) {
    if (death.at - counter.seen_at > kStale) counter.taken = counter.seen;
    counter.seen = since;
    counter.seen_at = death.at;
  }
  const std::uint64_t free = since - counter.taken;
  if (is_foreign_kill(death) && free > 0) {
    ++counter.taken;
    ++kills_taken_;
  }
  return free;
}

void EvidenceCollector::add_memory(const Death& death, Evidence& evidence) {
  const auto noted = noted_kills_.find(death.index);
  const bool own_kill = noted != noted_kills_.end() && noted->second > 0;
  const std::uint64_t earlier_kills = kills_taken_ - (own_kill ? 1 : 0);
  if (const auto text = read_small(roots_.proc + "/vmstat")) {
    const std::uint64_t now = keyed_number(*text, "oom_kill").value_or(0);
    evidence.machine_oom_kills = now - std::min(now, machine_kills_before_ + earlier_kills);
  }
  const auto home = home_of_process(death.index);
  if (!home) return;
  evidence.memory_counters = count_kills(*home).has_value();
  evidence.oom_kills = noted != noted_kills_.end() ? noted->second : take_kills(*home, death);
  for (Home level = *home;; level.path = parent_of(level.path)) {
    const std::string directory = directory_of(level);
    const bool v1 = level.version == 1;
    MemoryGroup group{level.path, level.version, {}, {}, {}};
    group.limit = bytes_in(directory + (v1 ? "/memory.limit_in_bytes" : "/memory.max"));
    group.peak = bytes_in(directory + (v1 ? "/memory.max_usage_in_bytes" : "/memory.peak"));
    group.usage = bytes_in(directory + (v1 ? "/memory.usage_in_bytes" : "/memory.current"));
    if (group.limit || group.usage) evidence.groups.push_back(std::move(group));
    if (level.path == "/") break;
  }
}

Evidence EvidenceCollector::collect(const Death& death) {
  Evidence evidence;
  evidence.sent_signal = death.sent_signal;
  evidence.hung = death.hung;
  evidence.hang_why = death.hang_why;
  evidence.peak_rss = death.peak_rss;
  evidence.log = death.log_shown;
  add_memory(death, evidence);
  add_signal_facts(roots_, death, evidence);
  if (!death.log_path.empty()) {
    const std::string tail = log_tail(death.log_path, death.log_start, kFailureTextBytes);
    evidence.text = find_failure(tail + death.log_lost);
    if (!evidence.text) evidence.last_line = last_line(tail + death.log_lost);
    add_log_device(death, evidence);
  }
  if (evidence.text && evidence.text->out_of_memory)
    evidence.address_space_limit = limit_of(RLIMIT_AS, false);
  return evidence;
}

}  // namespace fleetrun::launcher
