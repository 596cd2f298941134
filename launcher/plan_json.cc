#include "launcher/plan_json.h"

#include <nlohmann/json.hpp>

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const ProcessSpec& process) {
  Json environment = Json::object();
  for (const auto& [name, value] : process.environment.values()) environment[name] = value;
  Json ports = Json::array();
  for (const Endpoint& endpoint : process.ports) ports.push_back(to_string(endpoint));
  return {{"role", to_string(process.identity.role)},
          {"rank", process.identity.rank},
          {"local_rank", process.identity.local_rank},
          {"program", process.program},
          {"argv", process.argv},
          {"environment", std::move(environment)},
          {"unset", process.unset},
          {"cwd", process.cwd},
          {"devices", process.identity.devices},
          {"ports", std::move(ports)},
          {"log", process.log_name},
          {"log_alias", process.log_alias}};
}

}  // namespace

std::string to_json(const Plan& plan) {
  Json processes = Json::array();
  for (const ProcessSpec& process : plan.processes) processes.push_back(to_json(process));
  const Json whole = {{"schema", kPlanSchema},
                      {"job_id", plan.job_id},
                      {"mode", to_string(plan.mode)},
                      {"pod", plan.pod_name},
                      {"log_dir", plan.log_dir},
                      {"log_overwrite", plan.log_overwrite},
                      {"ready_timeout_ms", plan.ready_timeout.count()},
                      {"grace_ms", plan.grace.count()},
                      {"processes", std::move(processes)}};
  // Bytes that are not UTF-8 (file names may hold them) become U+FFFD instead of an error.
  return whole.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fleetrun::launcher
