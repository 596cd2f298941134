#include "launcher/remote/launch_order.h"

#include <algorithm>
#include <iterator>

#include "launcher/config/job_file_roles.h"
#include "launcher/config/make_job_config.h"
#include "launcher/config/read_job_file.h"
#include "launcher/model/job_config.h"
#include "launcher/model/job_settings.h"
#include "launcher/remote/wire.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher::remote {
namespace {

/// About this host, or about how hosts are found: an order says these things itself.
constexpr std::string_view kOfThisHost[] = {
    "hosts",         "hostfile",    "include",     "exclude",    "export",       "chdir",
    "path",          "ssh",         "ssh_window",  "master",     "rank",         "ips",
    "nnodes",        "host",        "detach",      "dry_run",    "collect_logs", "rdzv_backend",
    "rdzv_endpoint", "master_addr", "secret_file", "standalone", "stdin"};

bool is_variable_name(std::string_view name) noexcept {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && is_letter(name.front()) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

void write_optional(Writer& writer, const std::optional<int>& number) {
  writer.boolean(number.has_value());
  writer.i32(number.value_or(0));
}

std::optional<int> read_optional(Reader& reader) {
  const bool there = reader.boolean();
  const int number = reader.i32();
  return there ? std::optional<int>(number) : std::nullopt;
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

std::string encode(const LaunchOrder& order) {
  Writer writer;
  writer.string(order.version);
  writer.u32(static_cast<std::uint32_t>(order.values.size()));
  for (const auto& [key, value] : order.values) {
    writer.string(key);
    writer.string(value);
  }
  writer.boolean(order.script.has_value());
  writer.string(order.script.value_or(""));
  writer.strings(order.script_args);
  writer.u32(static_cast<std::uint32_t>(order.environment.size()));
  for (const auto& [name, value] : order.environment) {
    writer.string(name);
    writer.string(value);
  }
  writer.string(order.cwd);
  writer.string(order.secret);
  writer.string(order.coordinator.host);
  writer.u32(order.coordinator.port);
  writer.string(order.address);
  writer.i32(order.node_rank);
  writer.string(order.node_name);
  for (const int number : {order.nodes.min, order.nodes.max, order.nodes.multiple}) writer.i32(number);
  writer.boolean(order.elastic);
  write_optional(writer, order.trainers);
  write_optional(writer, order.servers);
  writer.boolean(order.devices.has_value());
  writer.strings(order.devices.value_or(std::vector<std::string>()));
  return writer.take();
}

LaunchOrder decode_order(std::string_view bytes) {
  constexpr std::size_t kPair = 8;  // the lengths of two strings
  Reader reader(bytes);
  LaunchOrder order;
  order.version = reader.string();
  for (std::size_t left = reader.count(kPair); left > 0; --left) {
    std::string key = reader.string();
    order.values[std::move(key)] = reader.string();
  }
  const bool has_script = reader.boolean();
  order.script = reader.string();
  if (!has_script) order.script.reset();
  order.script_args = reader.strings();
  for (std::size_t left = reader.count(kPair); left > 0; --left) {
    std::string name = reader.string();
    order.environment.emplace_back(std::move(name), reader.string());
  }
  order.cwd = reader.string();
  order.secret = reader.string();
  order.coordinator.host = reader.string();
  order.coordinator.port = static_cast<std::uint16_t>(reader.u32());
  order.address = reader.string();
  order.node_rank = reader.i32();
  order.node_name = reader.string();
  for (int* number : {&order.nodes.min, &order.nodes.max, &order.nodes.multiple}) *number = reader.i32();
  order.elastic = reader.boolean();
  order.trainers = read_optional(reader);
  order.servers = read_optional(reader);
  const bool has_devices = reader.boolean();
  order.devices = reader.strings();
  if (!has_devices) order.devices.reset();
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
  Rendezvous& rendezvous = config.rendezvous;
  rendezvous.kind = Rendezvous::Kind::master;
  rendezvous.master = order.coordinator;
  rendezvous.may_coordinate = false;
  rendezvous.nodes = order.nodes;
  rendezvous.elastic = order.elastic;
  rendezvous.node_rank = order.node_rank;
  rendezvous.node_name = order.node_name;
  rendezvous.secret = order.secret;
  rendezvous.secret_file.reset();
  return config;
}

}  // namespace fleetrun::launcher::remote
