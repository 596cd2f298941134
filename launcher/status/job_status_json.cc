#include "launcher/status/job_status_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

double seconds_between(std::int64_t begin, std::int64_t end) {
  return static_cast<double>(end - begin) / 1e9;
}

std::int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

Json exit_to_json(const std::optional<ExitReason>& exit) {
  if (!exit) return nullptr;
  Json json = {{"status", exit_status(*exit)}};
  if (exit->kind == ExitReason::Kind::exited) {
    json["code"] = exit->code;
  } else {
    json["signal"] = signal_name(exit->code);
    json["core"] = exit->core_dumped;
  }
  return json;
}

std::optional<ExitReason> exit_from_json(const Json& json) {
  if (json.is_null()) return std::nullopt;
  if (json.contains("code")) return ExitReason{ExitReason::Kind::exited, json.at("code").get<int>(), false};
  const int status = json.at("status").get<int>();
  return ExitReason{ExitReason::Kind::signaled, status - 128, json.at("core").get<bool>()};
}

Json to_json_value(const ProcessStatus& process, std::int64_t now) {
  const auto& usage = process.usage;
  const std::int64_t end = process.ended_at.value_or(now);
  return {{"role", process.role},
          {"rank", process.rank},
          {"name", process.name},
          {"pid", process.pid},
          {"state", to_string(process.state)},
          {"attempt", process.attempt},
          {"starts", process.starts},
          {"uptime_seconds", process.starts > 0 ? Json(seconds_between(process.started_at, end)) : Json()},
          {"exit", exit_to_json(process.exit)},
          {"cause", process.cause},
          {"log", process.log},
          {"cpu_seconds", usage ? Json(usage->cpu_seconds) : Json()},
          {"rss_bytes", usage ? Json(usage->rss_bytes) : Json()},
          {"processes", usage ? Json(usage->processes) : Json()},
          {"kernel_state", usage ? Json(std::string(usage->state ? 1 : 0, usage->state)) : Json()},
          {"last_line", process.last_line ? Json(*process.last_line) : Json()},
          {"log_bytes", process.log_bytes ? Json(*process.log_bytes) : Json()},
          {"figures", process.metrics ? parse_json<Json>(to_json(*process.metrics)) : Json()}};
}

template <class Enum>
Enum enum_from(const Json& json, Enum last) {
  const auto text = json.get<std::string>();
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (to_string(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  throw Error(ErrorKind::data, "the status of a job says " + text + ", which this fleetrun does not know",
              "use the fleetrun that runs the job");
}

ProcessStatus process_from_json(const Json& json, std::int64_t now) {
  ProcessStatus process;
  process.role = json.at("role").get<std::string>();
  process.name = json.at("name").get<std::string>();
  process.rank = json.at("rank").get<int>();
  process.pid = json.at("pid").get<pid_t>();
  process.state = enum_from(json.at("state"), ProcessState::not_started);
  process.attempt = json.at("attempt").get<int>();
  process.starts = json.at("starts").get<int>();
  process.exit = exit_from_json(json.at("exit"));
  process.cause = json.at("cause").get<std::string>();
  process.log = json.at("log").get<std::string>();
  if (!json.at("uptime_seconds").is_null()) {
    process.started_at = now - nanoseconds(json.at("uptime_seconds").get<double>());
    if (process.state != ProcessState::running && process.state != ProcessState::stopping)
      process.ended_at = now;
  }
  if (!json.at("cpu_seconds").is_null()) {
    const auto state = json.at("kernel_state").get<std::string>();
    process.usage = ResourceUsage{.cpu_seconds = json.at("cpu_seconds").get<double>(),
                                  .rss_bytes = json.at("rss_bytes").get<std::uint64_t>(),
                                  .processes = json.at("processes").get<int>(),
                                  .state = state.empty() ? '\0' : state.front()};
  }
  if (!json.at("last_line").is_null()) process.last_line = json.at("last_line").get<std::string>();
  if (!json.at("log_bytes").is_null()) process.log_bytes = json.at("log_bytes").get<std::uint64_t>();
  if (json.contains("figures") && !json.at("figures").is_null())
    process.metrics = parse_server_metrics(json_text(json.at("figures")));
  return process;
}

JobStatus status_from(const Json& json) {
  JobStatus status;
  status.job_id = json.at("job_id").get<std::string>();
  status.pod = json.at("pod").get<std::string>();
  status.mode = json.at("mode").get<std::string>();
  status.phase = enum_from(json.at("phase"), JobPhase::ended);
  status.phase_reason = json.at("phase_reason").get<std::string>();
  status.attempt = json.at("attempt").get<int>();
  status.containment = json.at("containment").get<std::string>();
  status.cgroup = json.at("cgroup").get<std::string>();
  status.log_dir = json.at("log_dir").get<std::string>();
  status.fleetrun_pid = json.at("fleetrun_pid").get<pid_t>();
  status.init_pid = json.at("init_pid").get<pid_t>();
  status.now = nanoseconds(json.at("uptime_seconds").get<double>());
  status.generation = json.at("epoch").get<std::uint64_t>();
  status.hosts = json.at("hosts").get<std::vector<std::string>>();
  if (json.contains("servers")) status.servers = json.at("servers").get<std::vector<std::string>>();
  status.logs_truncated = json.at("logs_truncated").get<bool>();
  if (!json.at("exit_status").is_null()) status.exit_status = json.at("exit_status").get<int>();
  for (const Json& process : json.at("processes"))
    status.processes.push_back(process_from_json(process, status.now));
  for (const Json& restart : json.at("restarts")) {
    status.restarts.push_back({.next_attempt = restart.at("next_attempt").get<int>(),
                               .scope = enum_from(restart.at("scope"), RestartScope::group),
                               .process = restart.at("process").get<std::string>(),
                               .kind = enum_from(restart.at("kind"), FailureKind::not_started),
                               .cause = restart.at("cause").get<std::string>(),
                               .why = restart.at("why").get<std::string>()});
  }
  return status;
}

}  // namespace

std::string to_json(const JobStatus& status) {
  Json processes = Json::array();
  for (const ProcessStatus& process : status.processes)
    processes.push_back(to_json_value(process, status.now));
  Json restarts = Json::array();
  for (const RestartStatus& restart : status.restarts) {
    restarts.push_back({{"next_attempt", restart.next_attempt},
                        {"scope", to_string(restart.scope)},
                        {"process", restart.process},
                        {"kind", to_string(restart.kind)},
                        {"cause", restart.cause},
                        {"why", restart.why}});
  }
  const Json json = {{"schema", kStatusSchema},
                     {"job_id", status.job_id},
                     {"pod", status.pod},
                     {"mode", status.mode},
                     {"phase", to_string(status.phase)},
                     {"phase_reason", status.phase_reason},
                     {"attempt", status.attempt},
                     {"containment", status.containment},
                     {"cgroup", status.cgroup},
                     {"log_dir", status.log_dir},
                     {"fleetrun_pid", status.fleetrun_pid},
                     {"init_pid", status.init_pid},
                     {"uptime_seconds", seconds_between(status.began_at, status.now)},
                     {"epoch", status.generation},
                     {"hosts", status.hosts},
                     {"servers", status.servers},
                     {"logs_truncated", status.logs_truncated},
                     {"exit_status", status.exit_status ? Json(*status.exit_status) : Json()},
                     {"processes", std::move(processes)},
                     {"restarts", std::move(restarts)}};
  return json_text(json);
}

JobStatus job_status_from_json(std::string_view text) {
  try {
    const Json json = parse_json<Json>(text);
    if (json.at("schema").get<int>() != kStatusSchema)
      throw Error(ErrorKind::data,
                  "the status of the job has schema " + json_text(json.at("schema")) + ", not " +
                      std::to_string(kStatusSchema),
                  "use the fleetrun that runs the job");
    return status_from(json);
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::data, std::string("the status of the job cannot be read: ") + error.what(),
                "use the fleetrun that runs the job");
  }
}

}  // namespace fleetrun::launcher
