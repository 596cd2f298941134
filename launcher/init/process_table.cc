#include "launcher/init/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

std::string place_of(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

/// "1234 (any name) S 1 …"
bool parse_stat(const std::string& text, KernelProcess& process) {
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 >= text.size()) return false;
  process.name = text.substr(open + 1, close - open - 1);
  process.state = text.substr(close + 2, 1);
  process.parent = static_cast<pid_t>(std::strtol(text.c_str() + close + 4, nullptr, 10));
  return true;
}

std::unordered_map<pid_t, KernelProcess> every_process() {
  std::unordered_map<pid_t, KernelProcess> processes;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return processes;
  while (const dirent* entry = ::readdir(proc)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    KernelProcess process;
    if (parse_stat(read_whole(std::string("/proc/") + entry->d_name + "/stat"), process))
      processes.emplace(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)), std::move(process));
  }
  ::closedir(proc);
  return processes;
}

}  // namespace

std::string read_whole(const std::string& path) {
  std::string text;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return text;
  char block[8192];
  for (ssize_t got; (got = ::read(fd.value(), block, sizeof block)) > 0;)
    text.append(block, static_cast<std::size_t>(got));
  return text;
}

std::vector<pid_t> descendants_of(pid_t root) {
  const auto processes = every_process();
  std::vector<pid_t> found;
  for (const auto& [pid, process] : processes) {
    if (process.state == "Z" || process.state == "X") continue;
    pid_t above = process.parent;
    for (std::size_t depth = 0; above > 1 && above != root && depth <= processes.size(); ++depth) {
      const auto parent = processes.find(above);
      above = parent == processes.end() ? 0 : parent->second.parent;
    }
    if (above == root) found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> own_children() {
  std::vector<pid_t> children;
  const std::string path = place_of(::getpid(), "task/") + std::to_string(::getpid()) + "/children";
  if (::access(path.c_str(), R_OK) == 0) {
    const std::string text = read_whole(path);
    char* end = nullptr;
    for (const char* at = text.c_str(); const long pid = std::strtol(at, &end, 10); at = end)
      children.push_back(static_cast<pid_t>(pid));
    return children;
  }
  for (const auto& [pid, process] : every_process()) {
    if (process.parent == ::getpid()) children.push_back(pid);
  }
  return children;
}

pid_t session_of(pid_t pid) {
  return ::getsid(pid);
}

KernelProcess state_of(pid_t pid) {
  KernelProcess process;
  if (!parse_stat(read_whole(place_of(pid, "stat")), process)) return {};
  process.where = read_whole(place_of(pid, "wchan"));
  if (process.where == "0") process.where.clear();
  return process;
}

std::string command_of(pid_t pid) {
  constexpr std::size_t kMost = 80;
  std::string command = read_whole(place_of(pid, "cmdline"));
  while (!command.empty() && command.back() == '\0') command.pop_back();
  std::replace(command.begin(), command.end(), '\0', ' ');
  if (command.empty()) return state_of(pid).name;
  return command.size() <= kMost ? command : command.substr(0, kMost) + "...";
}

}  // namespace fleetrun::launcher
