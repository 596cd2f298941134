#include "launcher/status/control_request.h"

#include <signal.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>

#include "launcher/model/signal_map.h"
#include "runtime/base/error.h"
#include "runtime/base/exit_reason.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLongestGrace = 30 * 24 * 3600.0;  // as for --grace

[[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) {
  throw Error(ErrorKind::usage, what, hint);
}

void refuse_other_fields(const Json& json, std::initializer_list<const char*> known) {
  for (const auto& [name, value] : json.items()) {
    if (name == "request") continue;
    if (std::find(known.begin(), known.end(), name) == known.end())
      refuse("a " + json.at("request").get<std::string>() + " request has no field " + printable(name));
  }
}

int read_signal(const Json& json) {
  const auto& value = json.at("signal");
  const auto number = value.is_string() ? parse_signal(value.get<std::string>()) : std::nullopt;
  if (!number)
    refuse("signal " + printable(json_text(value)) + " is not known", "write it as \"TERM\" or \"USR1\"");
  return *number;
}

/// The processes that "role" and "rank" name.
std::vector<std::size_t> read_processes(const Json& json, const Plan& plan) {
  const std::string role = json.value("role", std::string());
  if (role.empty() && json.contains("rank")) refuse("a rank needs its role");
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < plan.processes.size(); ++i) {
    const ProcessSpec& process = plan.processes[i];
    if (!role.empty() && plan.roles.at(process.role).name != role) continue;
    if (json.contains("rank") && json.at("rank").get<int>() != process.identity.rank) continue;
    found.push_back(i);
  }
  if (found.empty())
    refuse("there is no " + printable(role) +
           (json.contains("rank") ? " " + json_text(json.at("rank")) : "") + " in this job");
  return found;
}

StopRequest read_stop(const Json& json) {
  refuse_other_fields(json, {"now", "grace_seconds", "signal"});
  StopRequest stop;
  stop.now = json.value("now", false);
  if (json.contains("signal")) stop.signal = read_signal(json);
  if (json.contains("grace_seconds")) {
    const double seconds = json.at("grace_seconds").get<double>();
    if (!(seconds >= 0 && seconds <= kLongestGrace))
      refuse("grace_seconds is " + json_text(json.at("grace_seconds")) + ", not 0 to 2592000");
    stop.grace = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  }
  return stop;
}

ControlRequest read_request(const Json& json, const Plan& plan) {
  const auto request = json.at("request").get<std::string>();
  if (request == "stop") return read_stop(json);
  if (request == "signal") {
    refuse_other_fields(json, {"signal", "role", "rank"});
    return SignalRequest{read_signal(json), read_processes(json, plan)};
  }
  if (request == "restart") {
    refuse_other_fields(json, {"role", "rank"});
    if (!json.contains("role") || !json.contains("rank")) refuse("a restart needs role and rank");
    return RestartRequest{read_processes(json, plan).front()};
  }
  if (request == "resize") {
    refuse_other_fields(json, {"servers"});
    return ResizeRequest{json.at("servers").get<int>()};
  }
  refuse_other_fields(json, {});
  if (request == "status") return StatusRequest{};
  if (request == "stacks") return StacksRequest{};
  if (request == "attach") return AttachRequest{};
  refuse("request " + printable(request) + " is not known",
         "there are status, stop, signal, restart, resize, stacks and attach");
}

Json to_json_value(const StopRequest& stop) {
  Json json = {{"request", "stop"}};
  if (stop.now) json["now"] = true;
  if (stop.grace) json["grace_seconds"] = static_cast<double>(stop.grace->count()) / 1000;
  if (stop.signal != 0) json["signal"] = signal_name(stop.signal);
  return json;
}

void name_process(Json& json, const Plan& plan, std::size_t index) {
  json["role"] = plan.roles.at(plan.processes.at(index).role).name;
  json["rank"] = plan.processes[index].identity.rank;
}

Json to_json_value(const ControlRequest& request, const Plan& plan) {
  if (const auto* stop = std::get_if<StopRequest>(&request)) return to_json_value(*stop);
  if (const auto* signal = std::get_if<SignalRequest>(&request)) {
    Json json = {{"request", "signal"}, {"signal", signal_name(signal->number)}};
    if (signal->processes.size() == 1)
      name_process(json, plan, signal->processes.front());
    else if (signal->processes.size() < plan.processes.size())
      json["role"] = plan.roles.at(plan.processes.at(signal->processes.front()).role).name;
    return json;
  }
  if (const auto* restart = std::get_if<RestartRequest>(&request)) {
    Json json = {{"request", "restart"}};
    name_process(json, plan, restart->process);
    return json;
  }
  if (const auto* resize = std::get_if<ResizeRequest>(&request))
    return {{"request", "resize"}, {"servers", resize->servers}};
  if (std::holds_alternative<StatusRequest>(request)) return {{"request", "status"}};
  if (std::holds_alternative<StacksRequest>(request)) return {{"request", "stacks"}};
  return {{"request", "attach"}};
}

}  // namespace

ControlRequest parse_control_request(std::string_view line, const Plan& plan) {
  try {
    const Json json = parse_json<Json>(line);
    if (!json.is_object()) refuse("a request is an object: {\"request\":\"status\"}");
    return read_request(json, plan);
  } catch (const Json::exception& error) {
    refuse(std::string("the request cannot be read: ") + printable(error.what()));
  }
}

std::string to_json(const ControlRequest& request, const Plan& plan) {
  return json_text(to_json_value(request, plan));
}

std::string to_json(const StopRequest& request) {
  return json_text(to_json_value(request));
}

std::string attached_line(std::string_view event_line, const Sentence& sentence) {
  const Json text = sentence.text;
  std::string line = "{\"event\":";
  line.append(event_line.substr(0, event_line.find('\n')));
  line.append(",\"level\":\"").append(to_string(sentence.level)).append("\",\"text\":");
  line.append(json_text(text));
  return line.append("}\n");
}

}  // namespace fleetrun::launcher
