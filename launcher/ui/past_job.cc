#include "launcher/ui/past_job.h"

#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "launcher/logs/log_catalog.h"
#include "launcher/logs/log_tail.h"
#include "launcher/status/job_status.h"
#include "launcher/status/job_status_json.h"
#include "launcher/ui/log_lines.h"
#include "runtime/base/json_text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBytes = std::size_t{16} << 20, kTail = 4096;

std::optional<std::string> own_text(const std::string& path) {
  const UniqueFd file(open_own_log(path));
  if (!file) return std::nullopt;
  std::string text(kMostBytes, '\0');
  const ssize_t count = ::pread(file.value(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

Json new_process(const Json& event) {
  return {{"role", event.at("role")},
          {"rank", event.at("rank")},
          {"name", event.at("process")},
          {"pid", -1},
          {"state", "waiting"},
          {"attempt", 0},
          {"starts", 0},
          {"exit", nullptr},
          {"cause", ""},
          {"last_line", nullptr}};
}

/// What `event` says of its process.
void apply(const Json& event, Json& process) {
  const auto type = event.at("type").get<std::string>();
  if (event.contains("attempt")) process["attempt"] = event.at("attempt");
  if (type == "process_started") {
    process["pid"] = event.at("pid");
    process["state"] = "running";
    process["starts"] = process.at("starts").get<int>() + 1;
  } else if (type == "process_exited") {
    const bool is_well = event.at("asked").get<bool>() || event.at("status").get<int>() == 0;
    process["state"] = is_well ? "ended" : "failed";
    process["exit"] = {{"status", event.at("status")}};
    if (event.contains("signal")) process["exit"]["signal"] = event.at("signal");
  } else if (type == "process_not_started") {
    process["state"] = "not_started";
    process["cause"] = event.at("error");
  } else if (type == "failure_explained") {
    process["cause"] = event.at("cause");
  }
}

void add_last_lines(const std::string& pod_directory,
                    std::map<std::pair<std::string, int>, Json>& processes) {
  for (const FoundLog& log : list_logs(pod_directory)) {
    const auto found = processes.find({log.role, log.rank});
    if (found != processes.end())
      found->second["last_line"] = last_shown_line(log_tail(log.paths.back(), 0, kTail));
  }
}

}  // namespace

std::optional<std::string> past_status(const std::string& pod_directory) {
  const auto events = own_text(pod_directory + "/events.jsonl");
  if (!events) return std::nullopt;
  Json status = {{"schema", kStatusSchema}, {"job_id", ""},       {"pod", ""},    {"mode", ""},
                 {"phase", "ended"},        {"phase_reason", ""}, {"attempt", 0}, {"exit_status", nullptr}};
  std::map<std::pair<std::string, int>, Json> processes;
  double began = 0, ended = 0;
  for (std::size_t begin = 0; begin < events->size();) {
    const std::size_t end = std::min(events->find('\n', begin), events->size());
    const Json event = read_json<Json>(std::string_view(*events).substr(begin, end - begin));
    begin = end + 1;
    if (!event.is_object()) continue;
    try {
      ended = event.at("at").get<double>() / 1e9;
      if (event.at("type") == "job_began") {
        for (const char* name : {"job_id", "pod", "mode"}) status[name] = event.at(name);
        began = ended;
      }
      if (event.at("type") == "attempt_began") status["attempt"] = event.at("attempt");
      if (event.at("type") == "job_ended") status["exit_status"] = event.at("exit_status");
      if (!event.contains("process")) continue;
      const std::pair key(event.at("role").get<std::string>(), event.at("rank").get<int>());
      apply(event, processes.try_emplace(key, new_process(event)).first->second);
    } catch (const Json::exception&) {
      continue;  // another fleetrun's, of other fields
    }
  }
  add_last_lines(pod_directory, processes);
  status["uptime_seconds"] = ended - began;
  status["processes"] = Json::array();
  for (auto& [key, process] : processes) status["processes"].push_back(std::move(process));
  return json_text(status);
}

std::optional<std::string> verdict_of(const std::string& pod_directory) {
  return own_text(pod_directory + "/verdict.json");
}

}  // namespace fleetrun::launcher
