// How many processes of which role, and with which devices.
#include <algorithm>

#include "launcher/config/job_config_values.h"
#include "launcher/model/program.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr int kMaxProcesses = 4096;  // per host and role

/// A host of several may have no process of a role.
std::optional<int> process_count(const Values& values, std::string_view key, std::int64_t min = 1) {
  if (!values.given(key)) return std::nullopt;
  return static_cast<int>(read_whole_number(values[key], min, kMaxProcesses));
}

std::vector<Endpoint> endpoint_list(const Values& values, std::string_view key) {
  const Value& value = values[key];
  if (!values.given(key)) return {};
  if (value.text.empty()) refuse(value, "a list of endpoints is needed", "write it as HOST:PORT,HOST:PORT");
  return while_doing("reading " + value.name, [&] { return parse_endpoint_list(value.text); });
}

/// --nproc_per_node is a number, or torchrun's words for "as many as there are".
void read_trainers_by(const Values& values, JobConfig& config) {
  const Value& wanted = values["nproc_per_node"];
  if (!values.given("nproc_per_node")) return;
  if (wanted.text == "auto")
    config.trainers_by = TrainersBy::automatic;
  else if (wanted.text == "gpu")
    config.trainers_by = TrainersBy::gpu;
  else if (wanted.text == "cpu")
    config.trainers_by = TrainersBy::cpu;
  else
    config.nproc_per_node = process_count(values, "nproc_per_node");
}

/// Where both a number and a list are given they have to agree, and nobody may be in two places.
void check_endpoints(const Values& values, const JobConfig& config) {
  const auto check = [&](std::optional<int> count, const std::vector<Endpoint>& list, const char* number,
                         const char* names) {
    if (!count || list.empty() || static_cast<std::size_t>(*count) == list.size()) return;
    throw Error(ErrorKind::usage,
                values[number].name + " is " + std::to_string(*count) + ", but " + values[names].name +
                    " lists " + std::to_string(list.size()),
                "leave one of the two out");
  };
  check(config.server_num, config.servers, "server_num", "servers");
  check(config.trainer_num, config.trainers, "trainer_num", "trainers");
  for (const Endpoint& endpoint : config.trainers) {
    if (std::find(config.servers.begin(), config.servers.end(), endpoint) != config.servers.end())
      throw Error(ErrorKind::usage, "endpoint " + to_string(endpoint) + " is both a server's and a trainer's",
                  "give every process an endpoint of its own");
  }
}

}  // namespace

void read_processes(const Values& values, JobConfig& config) {
  const bool several = values.given("nnodes") || values.given("hosts") || values.given("hostfile");
  config.server_num = process_count(values, "server_num", several ? 0 : 1);
  config.trainer_num = process_count(values, "trainer_num", several ? 0 : 1);
  if (config.server_num == 0 && config.trainer_num == 0)
    refuse(values["trainer_num"], values["server_num"].name + " is 0 too", "a host has at least one process");
  read_trainers_by(values, config);
  config.servers = endpoint_list(values, "servers");
  config.trainers = endpoint_list(values, "trainers");
  if (values.given("devices")) config.devices = read_list(values["devices"], "0,1,2");
  check_endpoints(values, config);
  // One process alone has nobody to meet.
  if (config.script == kRunCheck && config.mode != Mode::ps && !config.nproc_per_node)
    config.nproc_per_node = 2;
}

}  // namespace fleetrun::launcher
