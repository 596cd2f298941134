#include "launcher/remote/launch_order.h"

#include <algorithm>
#include <iterator>

#include "launcher/config/job_file_roles.h"
#include "launcher/config/make_job_config.h"
#include "launcher/config/read_job_file.h"
#include "launcher/model/job_config.h"
#include "launcher/model/job_settings.h"
#include "runtime/base/codec.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher::remote {
namespace {

/// About this host, or about how hosts are found: an order says these things itself.
constexpr std::string_view kOfThisHost[] = {
    "hosts",         "hostfile",    "include",      "exclude",     "export",       "chdir",
    "path",          "ssh",         "ssh_window",   "master",      "rank",         "ips",
    "nnodes",        "host",        "detach",       "dry_run",     "collect_logs", "rdzv_backend",
    "rdzv_endpoint", "master_addr", "secret_file",  "standalone",  "stdin",        "on_event",
    "ship",          "ship_to",     "ship_exclude", "ship_remove", "pty"};

bool is_variable_name(std::string_view name) noexcept {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && is_letter(name.front()) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

/// `environ` without the variables that would be read as settings, but for the exported ones.
Environ without_settings(const Environ& environ, const LaunchOrder& order) {
  Environ left = environ;
  for (const Setting& row : settings()) {
    for (const std::string& name : split(row.variables, ' ')) left.erase(name);
  }
  for (const char* list : {"PADDLE_TRAINER_ENDPOINTS", "DISTRIBUTED_TRAINER_ENDPOINTS"}) left.erase(list);
  for (const char* engine : {"SLURM_JOB_ID", "SLURM_JOBID", "KUBERNETES_SERVICE_HOST", "VC_TASK_INDEX",
                             "PADDLE_TRAINERS", "PADDLE_ELASTIC_SERVER"})
    left.erase(engine);  // launcher/schedulers: the order says where to meet
  for (const auto& [name, value] : order.environment) left.set(name, value);
  return left;
}

}  // namespace

template <class Archive, class Value>
void fields(Archive& archive, Value& order, const LaunchOrder*) {
  archive(order.version, order.values, order.script, order.script_args, order.environment, order.cwd,
          order.secret, order.coordinator, order.address, order.node_rank, order.node_name, order.nodes.min,
          order.nodes.max, order.nodes.multiple, order.elastic, order.trainers, order.servers, order.devices);
}

std::string encode(const LaunchOrder& order) {
  codec::Writer writer;
  writer(order);
  return writer.take();
}

LaunchOrder decode_order(std::string_view bytes) {
  codec::Reader reader(bytes);
  LaunchOrder order;
  reader(order);
  reader.end();
  return order;
}

std::map<std::string, std::string, std::less<>> portable_values(const Options& options,
                                                                const Environ& environ) {
  std::map<std::string, std::string, std::less<>> values;
  for (const Setting& row : settings()) {
    if (std::find(std::begin(kOfThisHost), std::end(kOfThisHost), row.key) != std::end(kOfThisHost)) continue;
    if (const auto flag = options.values.find(row.key); flag != options.values.end()) {
      values.emplace(row.key, flag->second);
      continue;
    }
    for (const std::string& name : split(row.variables, ' ')) {
      const std::string* value = environ.find(name);
      if (!value) continue;
      values.emplace(row.key, *value);
      break;
    }
  }
  return values;
}

std::vector<std::pair<std::string, std::string>> exported_variables(const std::vector<std::string>& list,
                                                                    const Environ& environ) {
  std::map<std::string, std::string, std::less<>> variables;
  for (const std::string& word : list) {
    const std::size_t equals = word.find('=');
    const bool prefix = equals == std::string::npos && word.ends_with('*');
    const std::string name = prefix ? word.substr(0, word.size() - 1) : word.substr(0, equals);
    if (!is_variable_name(name))
      throw Error(ErrorKind::usage, "--export: '" + printable(word, 80) + "' is not the name of a variable",
                  "write NAME, NAME=VALUE or PREFIX*");
    if (equals != std::string::npos) {
      variables[name] = word.substr(equals + 1);
    } else if (prefix) {
      for (const auto& [other, value] : environ.values()) {
        if (other.starts_with(name)) variables[other] = value;
      }
    } else {
      const std::string* value = environ.find(name);
      if (!value)
        throw Error(ErrorKind::usage, "--export: " + name + " is not set here",
                    "set it, or write " + name + "=VALUE");
      variables[name] = *value;
    }
  }
  return {variables.begin(), variables.end()};
}

JobConfig config_of(const LaunchOrder& order, const Environ& environ) {
  Options options;
  options.values = order.values;
  for (const auto& [key, value] : order.values) options.spelled.emplace(key, "--" + key);
  options.script = order.script;
  options.script_args = order.script_args;
  if (order.script && is_job_file(*order.script)) apply_job_file(read_job_file(*order.script), options);
  if (order.devices) options.values["devices"] = join(*order.devices, ",");
  if (order.devices) options.spelled["devices"] = "--devices";
  JobConfig config = make_job_config(options, without_settings(environ, order));
  if (order.servers) config.server_num = order.servers;
  if (order.trainers && config.mode == Mode::ps) config.trainer_num = order.trainers;
  if (order.trainers && config.mode != Mode::ps) config.nproc_per_node = order.trainers;
  if (order.trainers) config.trainers_by = TrainersBy::number;
  if (!order.address.empty()) {
    config.host = order.address;
    config.host_chosen = true;
  }
  config.on_event.clear();  // of a job file: who gave the order runs it
  Rendezvous& rendezvous = config.rendezvous;
  rendezvous.kind = Rendezvous::Kind::master;
  rendezvous.master = order.coordinator;
  rendezvous.may_coordinate = false;
  rendezvous.nodes = order.nodes;
  rendezvous.elastic = order.elastic;
  rendezvous.node_rank = order.node_rank;
  rendezvous.node_name = order.node_name;
  rendezvous.by_order = true;
  rendezvous.secret = order.secret;
  rendezvous.secret_file.reset();
  return config;
}

}  // namespace fleetrun::launcher::remote
