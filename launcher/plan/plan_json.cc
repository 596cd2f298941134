#include "launcher/plan/plan_json.h"

#include <nlohmann/json.hpp>

#include "runtime/base/exit_reason.h"
#include "runtime/base/json_text.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const RolePlan& role) {
  constexpr const char* kReady[] = {"none", "port", "log_line", "descriptor"};
  Json json = {{"name", role.name},
               {"serves", role.serves},
               {"restart", to_string(role.restart)},
               {"grace_ms", role.grace.count()},
               {"stop_signal", signal_name(role.stop_signal)},
               {"ready", kReady[static_cast<int>(role.ready.kind)]},
               {"ready_text", role.ready.text},
               {"after", role.after}};
  if (role.wanted) json["wanted"] = *role.wanted;
  return json;
}

Json to_json(const RestartRules& rules) {
  Json budgets = Json::object();
  for (std::size_t kind = 0; kind < kFailureKinds; ++kind)
    budgets[std::string(to_string(static_cast<FailureKind>(kind)))] = rules.budgets[kind];
  return {{"budgets", std::move(budgets)},
          {"backoff_ms", rules.backoff.count()},
          {"longest_backoff_ms", rules.longest_backoff.count()},
          {"healthy_after_ms", rules.healthy_after.count()},
          {"total", rules.total},
          {"same_failures", rules.same_failures}};
}

Json to_json(const ProcessSpec& process) {
  Json environment = Json::object();
  for (const auto& [name, value] : process.environment.values()) environment[name] = value;
  Json ports = Json::array();
  for (const Endpoint& endpoint : process.ports) ports.push_back(to_string(endpoint));
  Json own_ports = Json::array();
  for (const Endpoint& endpoint : process.own_ports) own_ports.push_back(to_string(endpoint));
  return {{"name", process.name},
          {"role", to_string(process.identity.role)},
          {"rank", process.identity.rank},
          {"local_rank", process.identity.local_rank},
          {"program", process.program},
          {"argv", process.argv},
          {"environment", std::move(environment)},
          {"unset", process.unset},
          {"cwd", process.cwd},
          {"devices", process.identity.devices},
          {"cpus", process.cpus},
          {"memory_nodes", process.memory_nodes},
          {"ports", std::move(ports)},
          {"own_ports", std::move(own_ports)},
          {"log", process.log_name},
          {"log_alias", process.log_alias}};
}

}  // namespace

std::string to_json(const Plan& plan) {
  Json roles = Json::array();
  for (const RolePlan& role : plan.roles) roles.push_back(to_json(role));
  Json processes = Json::array();
  for (const ProcessSpec& process : plan.processes) processes.push_back(to_json(process));
  Json whole = {{"schema", kPlanSchema},
                {"job_id", plan.job_id},
                {"mode", to_string(plan.mode)},
                {"pod", plan.pod_name},
                {"log_dir", plan.log_dir},
                {"log_overwrite", plan.log_overwrite},
                {"ready_timeout_ms", plan.ready_timeout.count()},
                {"timeout_ms", plan.timeout ? Json(plan.timeout->count()) : Json()},
                {"restart", to_json(plan.restart)},
                {"backup_file", plan.backup ? Json(plan.backup->path) : Json()},
                {"roles", std::move(roles)},
                {"processes", std::move(processes)}};
  if (!plan.on_event.empty()) whole["on_event"] = plan.on_event;
  // Bytes that are not UTF-8 (file names may hold them) become U+FFFD instead of an error.
  return json_text(whole, 2) + "\n";
}

}  // namespace fleetrun::launcher
