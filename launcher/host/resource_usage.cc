#include "launcher/host/resource_usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <map>
#include <memory>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

// proc(5), counted from the state, which is the first field after the name.
enum Field {
  kState,
  kParent,
  kGroup,
  kSession,
  kUser = 11,
  kSystem,
  kChildUser,
  kChildSystem,
  kStart = 19,
  kRss = 21,
  kFields
};

template <class Number>
bool parse_field(std::string_view text, Number& number) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_number(const char* text) noexcept {
  if (*text == '\0') return false;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return false;
  }
  return true;
}

std::optional<ProcStat> read_stat(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  char text[2048];
  const ssize_t size = ::read(fd.value(), text, sizeof text);
  return size > 0 ? parse_proc_stat({text, static_cast<std::size_t>(size)}) : std::nullopt;
}

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text) noexcept {
  const std::size_t name = text.find(" (");
  const std::size_t end = text.rfind(") ");
  if (name == text.npos || end == text.npos || end < name) return std::nullopt;
  std::array<std::string_view, kFields> fields;
  std::string_view rest = text.substr(end + 2);
  for (std::string_view& field : fields) {
    const std::size_t blank = std::min(rest.find_first_of(" \n"), rest.size());
    field = rest.substr(0, blank);
    rest.remove_prefix(std::min(blank + 1, rest.size()));
  }
  ProcStat stat;
  std::uint64_t user = 0, system = 0;
  std::int64_t child_user = 0, child_system = 0, rss = 0;
  if (fields[kState].size() != 1 || !parse_field(text.substr(0, name), stat.pid) ||
      !parse_field(fields[kParent], stat.parent) || !parse_field(fields[kSession], stat.session) ||
      !parse_field(fields[kUser], user) || !parse_field(fields[kSystem], system) ||
      !parse_field(fields[kChildUser], child_user) || !parse_field(fields[kChildSystem], child_system) ||
      !parse_field(fields[kStart], stat.start_ticks) || !parse_field(fields[kRss], rss))
    return std::nullopt;
  stat.state = fields[kState].front();
  stat.cpu_ticks =
      user + system + static_cast<std::uint64_t>(child_user) + static_cast<std::uint64_t>(child_system);
  stat.rss_pages = rss > 0 ? static_cast<std::uint64_t>(rss) : 0;
  return stat;
}

std::vector<ResourceUsage> sum_usage(const std::vector<pid_t>& pids, const std::vector<ProcStat>& processes) {
  std::map<pid_t, std::size_t> wanted;
  for (std::size_t i = 0; i < pids.size(); ++i) {
    if (pids[i] > 0) wanted.emplace(pids[i], i);
  }
  std::map<pid_t, const ProcStat*> by_pid;
  for (const ProcStat& process : processes) by_pid.emplace(process.pid, &process);
  // To which of `wanted` a process belongs: by itself, its session, or the nearest ancestor that does.
  const auto owner_of = [&](const ProcStat* process) {
    for (int depth = 0; process && depth < 1000; ++depth) {
      auto found = wanted.find(process->pid);
      if (found == wanted.end()) found = wanted.find(process->session);
      if (found != wanted.end()) return found->second;
      const auto parent = by_pid.find(process->parent);
      process = parent == by_pid.end() ? nullptr : parent->second;
    }
    return pids.size();
  };
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<ResourceUsage> usage(pids.size());
  for (const ProcStat& process : processes) {
    const std::size_t owner = owner_of(&process);
    if (owner == pids.size()) continue;
    ResourceUsage& sum = usage[owner];
    sum.cpu_seconds += static_cast<double>(process.cpu_ticks) / ticks;
    sum.rss_bytes += process.rss_pages * page;
    ++sum.processes;
    if (process.pid == pids[owner]) sum.state = process.state;
  }
  return usage;
}

std::vector<ProcStat> read_processes(const std::string& proc) {
  std::vector<ProcStat> processes;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(proc.c_str()), ::closedir);
  if (!directory) return processes;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (!is_number(entry->d_name)) continue;
    if (const auto stat = read_stat(proc + "/" + entry->d_name + "/stat")) processes.push_back(*stat);
  }
  return processes;
}

std::vector<ResourceUsage> read_usage(const std::vector<pid_t>& pids, const std::string& proc) {
  return sum_usage(pids, read_processes(proc));
}

std::optional<ProcStat> proc_stat_of(pid_t pid, const std::string& proc) {
  return read_stat(proc + "/" + std::to_string(pid) + "/stat");
}

std::optional<std::uint64_t> start_ticks_of(pid_t pid, const std::string& proc) {
  const auto stat = proc_stat_of(pid, proc);
  if (!stat || stat->state == 'Z' || stat->state == 'X') return std::nullopt;
  return stat->start_ticks;
}

}  // namespace fleetrun::launcher
