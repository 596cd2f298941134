#include "launcher/logs/log_catalog.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "launcher/logs/log_tail.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kEventBytes = 16 * 1024;

std::optional<int> parse_number(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 0 || *number > 1'000'000 || text.front() == '+') return std::nullopt;
  return static_cast<int>(*number);
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// "workerlog.0.2" is part 2 of "workerlog.0".
std::optional<std::pair<std::string, int>> part_of_log(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot + 1 == name.size()) return std::nullopt;
  const auto number = parse_number(std::string_view(name).substr(dot + 1));
  if (!number || !log_of_name(name.substr(0, dot))) return std::nullopt;
  return std::pair(name.substr(0, dot), *number);
}

void add_attempt(const std::string& directory, int attempt, std::vector<FoundLog>& logs) {
  std::map<std::string, std::map<int, std::string>> parts;  // of each log, by age
  for (const std::string& name : names_in(directory)) {
    if (log_of_name(name))
      parts[name][0] = directory + "/" + name;
    else if (const auto part = part_of_log(name))
      parts[part->first][part->second] = directory + "/" + name;
  }
  std::vector<FoundLog> found;
  for (const auto& [name, by_age] : parts) {
    FoundLog log = *log_of_name(name);
    log.attempt = attempt;
    for (const auto& [age, path] : by_age) log.paths.insert(log.paths.begin(), path);
    found.push_back(std::move(log));
  }
  std::sort(found.begin(), found.end(), [](const FoundLog& a, const FoundLog& b) {
    return std::tie(a.role, a.rank) < std::tie(b.role, b.rank);
  });
  logs.insert(logs.end(), found.begin(), found.end());
}

std::string first_bytes(const std::string& path, std::size_t max) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string text(max, '\0');
  const ssize_t count = fd ? ::pread(fd.value(), text.data(), text.size(), 0) : 0;
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

/// The number after `"name":` in a line of JSON that fleetrun wrote.
std::optional<std::int64_t> number_field(std::string_view line, std::string_view name) {
  const std::string key = "\"" + std::string(name) + "\":";
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + key.size());
  return parse_integer(rest.substr(0, rest.find_first_of(",}")));
}

}  // namespace

std::optional<FoundLog> log_of_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == name.size() || name.front() == '.') return std::nullopt;
  const std::string_view kind = name.substr(0, dot);
  const auto rank = parse_number(name.substr(dot + 1));
  if (!rank || kind.size() < 4 || !kind.ends_with("log") || kind.ends_with(".log")) return std::nullopt;
  FoundLog log;
  log.role = kind == "workerlog" ? "trainer" : kind.substr(0, kind.size() - 3);
  log.rank = *rank;
  return log;
}

std::vector<std::string> list_pods(const std::string& log_dir) {
  std::vector<std::pair<std::int64_t, std::string>> pods;
  for (const std::string& name : names_in(log_dir)) {
    // The directory of attempt 0 is made with the pod's and changes no more once its logs are there.
    struct stat info = {};
    if (name.front() == '.' || ::lstat((log_dir + "/" + name).c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
      continue;
    if (::lstat((log_dir + "/" + name + "/0").c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    pods.emplace_back(std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec, name);
  }
  std::sort(pods.rbegin(), pods.rend());
  std::vector<std::string> names;
  for (const auto& pod : pods) names.push_back(pod.second);
  return names;
}

std::vector<std::string> list_host_directories(const std::string& log_dir) {
  std::vector<std::string> directories;
  for (const std::string& name : names_in(log_dir)) {
    const std::string directory = log_dir + "/" + name;
    if (!list_pods(directory).empty()) directories.push_back(directory);
  }
  return directories;
}

std::optional<std::string> find_pod(const std::string& log_dir, const std::optional<std::string>& name) {
  const std::vector<std::string> pods = list_pods(log_dir);
  if (!name) return pods.empty() ? std::nullopt : std::optional(pods.front());
  if (std::find(pods.begin(), pods.end(), *name) != pods.end()) return *name;
  // The logs' other names tell which job a pod is of: JOB.POD.trainer.0.log
  const std::vector<std::string> names = names_in(log_dir);
  for (const std::string& pod : pods) {
    const std::string head = *name + "." + pod + ".";
    if (std::any_of(names.begin(), names.end(), [&](const std::string& n) { return n.starts_with(head); }))
      return pod;
  }
  return std::nullopt;
}

std::vector<FoundLog> list_logs(const std::string& pod_directory) {
  std::vector<int> attempts;
  for (const std::string& name : names_in(pod_directory)) {
    if (const auto attempt = parse_number(name)) attempts.push_back(*attempt);
  }
  std::sort(attempts.begin(), attempts.end());
  std::vector<FoundLog> logs;
  for (const int attempt : attempts)
    add_attempt(pod_directory + "/" + std::to_string(attempt), attempt, logs);
  return logs;
}

bool job_is_over(const std::string& pod_directory) {
  const std::string events = pod_directory + "/events.jsonl";
  if (log_tail(events, 0, kEventBytes).find("\"type\":\"job_ended\"") != std::string::npos) return true;
  const auto pid = number_field(first_bytes(events, kEventBytes), "fleetrun_pid");
  return pid && *pid > 0 && ::kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH;
}

}  // namespace fleetrun::launcher
