// Watching and ending: time limits, signs of life, signals, containment, injected failures.
#include <limits>

#include "launcher/config/job_config_values.h"
#include "launcher/model/job_settings.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

/// "30" for all, or "server=60,trainer=5"; a role that is not named has the default.
ByRole<std::chrono::milliseconds> grace(const Values& values, const JobConfig& config) {
  const Value& wanted = values["grace"];
  ByRole<std::chrono::milliseconds> result;
  if (wanted.text.find('=') == std::string::npos) {
    result.all = read_duration(wanted);
    return result;
  }
  result.all = read_duration(part_of(wanted, std::string(setting("grace").initial)));
  for (const auto& [role, time] : read_pairs(wanted, "server=60,trainer=5")) {
    check_role(wanted, role, config);
    result.roles[role] = read_duration(part_of(wanted, time));
  }
  return result;
}

std::optional<std::chrono::milliseconds> time_limit(const Values& values, std::string_view key) {
  if (!values.given(key)) return std::nullopt;
  const std::chrono::milliseconds limit = read_duration(values[key]);
  if (limit.count() == 0) refuse(values[key], "a time above 0 is needed");
  return limit;
}

void read_faults(const Values& values, JobConfig& config) {
  config.hang.timeout = read_duration(values["hang_timeout"]);
  if (values.given("hang_by")) {
    const auto signs = parse_hang_signs(values["hang_by"].text);
    if (!signs)
      refuse(values["hang_by"], "a list of heartbeat, log and cpu is needed", "write for example log,cpu");
    if (config.hang.timeout.count() == 0)
      refuse(values["hang_by"], "the hang watch is off", "add for example --hang_timeout=600");
    config.hang.by = *signs;
  }
  if (values.given("inject")) config.inject = parse_injections(values["inject"].text);
  if (values.given("inject_seed"))
    config.inject_seed = static_cast<std::uint64_t>(
        read_whole_number(values["inject_seed"], 0, std::numeric_limits<std::int64_t>::max()));
}

Containment containment(const Value& value) {
  return read_word<Containment>(value, {{"auto", Containment::automatic},
                                        {"pidns", Containment::pidns},
                                        {"cgroup2", Containment::cgroup2},
                                        {"subreaper", Containment::subreaper}});
}

/// Port 0: any.
Endpoint page_address(const Value& value) {
  const std::size_t colon = value.text.rfind(':');
  const auto port = parse_integer(value.text.substr(colon == std::string::npos ? 0 : colon + 1));
  try {
    const std::string host = colon == std::string::npos ? "127.0.0.1" : value.text.substr(0, colon);
    if (port && *port >= 0 && *port <= std::numeric_limits<std::uint16_t>::max())
      return {parse_endpoint(host + ":1").host, static_cast<std::uint16_t>(*port)};
  } catch (const Error&) {  // of a host that is none
  }
  refuse(value, "a port or ADDRESS:PORT is needed", "write for example 8080, or 10.0.0.1:8080");
}

}  // namespace

void read_watch(const Values& values, JobConfig& config) {
  config.ready_timeout = read_duration(values["ready_timeout"]);
  config.grace = grace(values, config);
  config.timeout = time_limit(values, "timeout");
  if (values.given("signal_map"))
    config.signal_map = read_pairs(values["signal_map"], "USR1=forward,USR2=stop");
  config.containment = containment(values["containment"]);
  if (values.given("require_containment"))
    config.require_containment = containment(values["require_containment"]);
  if (values.given("metrics")) config.metrics = values["metrics"].text;
  if (values.given("ui")) config.ui = page_address(values["ui"]);
  if (values.given("on_event")) config.on_event = values["on_event"].text;
  read_faults(values, config);
}

}  // namespace fleetrun::launcher
