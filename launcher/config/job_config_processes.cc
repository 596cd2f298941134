// How many processes of which role, and with which devices.
#include <algorithm>

#include "launcher/config/job_config_values.h"
#include "launcher/model/program.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr int kMaxProcesses = 4096;  // per host and role
constexpr int kMostMovingServers = 64;

/// A host of several may have no process of a role.
std::optional<int> process_count(const Values& values, std::string_view key, std::int64_t min = 1) {
  if (!values.given(key)) return std::nullopt;
  return static_cast<int>(read_whole_number(values[key], min, kMaxProcesses));
}

/// --server_num is a number, or with how many processes the servers begin, and with how many they may go on.
void read_server_num(const Values& values, int min, JobConfig& config) {
  const Value& wanted = values["server_num"];
  const std::size_t colon = values.given("server_num") ? wanted.text.find(':') : std::string::npos;
  if (colon == std::string::npos) {
    config.server_num = process_count(values, "server_num", min);
    return;
  }
  const auto part = [&](const std::string& text, std::int64_t least, std::int64_t most) {
    return static_cast<int>(read_whole_number(part_of(wanted, text), least, most));
  };
  config.server_num = part(wanted.text.substr(0, colon), 1, kMostMovingServers);
  config.most_servers = part(wanted.text.substr(colon + 1), 2, kMostMovingServers);
  if (*config.server_num > *config.most_servers)
    refuse(wanted, "the second number is the most there may be, and the first the number at the start",
           "write it as --server_num=2:5");
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
  else if (parse_integer(wanted.text))
    config.nproc_per_node = process_count(values, "nproc_per_node");
  else
    refuse(wanted, "a whole number from 1, auto, cpu or gpu is needed");
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

/// The setting that makes it a ps job.
const Value& ps_by(const Values& values) {
  for (const char* key : {"server_num", "servers", "trainer_num", "trainers"}) {
    if (values.given(key)) return values[key];
  }
  return values["run_mode"];
}

/// Two flags that disagree are an error; of a variable that was meant for other jobs it is only said.
void disagree(const Value& value, const std::string& why, const std::string& hint, JobConfig& config) {
  if (value.source == Source::environment)
    config.notes.push_back(value.name + "=" + printable(value.text) + " is not used: " + why);
  else
    refuse(value, why, hint);
}

/// A ps job counts its trainers by --trainer_num or --trainers, and its processes see all devices.
void check_ps(const Values& values, JobConfig& config) {
  if (config.mode != Mode::ps || config.file) return;
  const Value& number = values["nproc_per_node"];
  const Value& devices = values["devices"];
  const std::string by = " in a ps job, which " + ps_by(values).name + " makes it";
  const auto per_node = static_cast<std::size_t>(config.nproc_per_node.value_or(0));
  const bool agrees = config.trainers.empty() ? config.nproc_per_node == config.trainer_num.value_or(1)
                                              : per_node > 0 && config.trainers.size() % per_node ==
                                                                    0;  // the list is that of all hosts
  if (values.given("nproc_per_node") && !agrees)
    disagree(number,
             config.trainers.empty()
                 ? "--trainer_num, which is " + std::to_string(config.trainer_num.value_or(1)) +
                       ", says how many trainers there are" + by
                 : values["trainers"].name + " says how many trainers there are" + by,
             "leave " + number.name + " out; --trainer_num=" + number.text + " starts so many trainers",
             config);
  if (values.given("devices"))
    disagree(devices, "devices are for the trainers of collective jobs; all are visible" + by,
             "leave " + devices.name + " out, or " + ps_by(values).name +
                 "; CUDA_VISIBLE_DEVICES limits what every process sees",
             config);
}

}  // namespace

void read_processes(const Values& values, JobConfig& config) {
  const bool several = values.given("nnodes") || values.given("hosts") || values.given("hostfile");
  read_server_num(values, several ? 0 : 1, config);
  config.trainer_num = process_count(values, "trainer_num", several ? 0 : 1);
  if (config.server_num == 0 && config.trainer_num == 0)
    refuse(values["trainer_num"], values["server_num"].name + " is 0 too", "a host has at least one process");
  read_trainers_by(values, config);
  config.servers = endpoint_list(values, "servers");
  config.trainers = endpoint_list(values, "trainers");
  if (values.given("devices")) config.devices = read_list(values["devices"], "0,1,2");
  for (const char* flag : {"gpus", "npus", "xpus"}) {
    if (values["devices"].name == std::string("--") + flag) config.device_flag = flag;
  }
  check_endpoints(values, config);
  check_ps(values, config);
  // One process alone has nobody to meet.
  if (config.script == kRunCheck && config.mode != Mode::ps && !config.nproc_per_node)
    config.nproc_per_node = 2;
}

void check_moving_servers(const Values& values, const JobConfig& config) {
  if (!config.most_servers) return;
  const Value& asked = values["server_num"];
  const char* kFixed = "start a fixed number of servers: --server_num=N";
  if (config.rendezvous.kind != Rendezvous::Kind::none || config.host_list.given())
    refuse(asked, "the job is on several hosts, and servers move between the processes of one", kFixed);
  if (!config.servers.empty())
    refuse(asked, values["servers"].name + " says where each server is", "leave one of the two out");
}

}  // namespace fleetrun::launcher
