// Order of precedence: flag, environment, default. Mode: ps where run_mode says so or servers, trainers or
// their numbers are given; collective otherwise. Whatever would need a second host is refused here.
#include "launcher/job_config.h"

#include <algorithm>
#include <limits>
#include <set>

#include "launcher/settings.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr int kMostProcesses = 4096;  // per host and role
constexpr std::size_t kLongestName = 64;

struct Value {
  std::string text;
  std::string name;  // what the user has to change: "--server_num" or "PADDLE_SERVER_NUM"
  Source source = Source::standard;
};

class Values {
 public:
  Values(const Options& options, const Environ& environ, std::vector<std::string>& notes) {
    for (const Setting& row : settings()) {
      const auto flag = options.values.find(row.key);
      const std::string* variable = row.variable.empty() ? nullptr : environ.find(row.variable);
      if (flag != options.values.end()) {
        const auto spelled = options.spelled.find(row.key);
        const std::string name =
            spelled != options.spelled.end() ? spelled->second : "--" + std::string(row.key);
        values_[row.key] = {flag->second, name, Source::flag};
        if (variable && *variable != flag->second)
          notes.push_back(name + " " + printable(flag->second) + " is used, not " +
                          std::string(row.variable) + "=" + printable(*variable) + " from the environment");
      } else if (variable && !ignored(row, *variable)) {
        values_[row.key] = {*variable, std::string(row.variable), Source::environment};
      } else {
        values_[row.key] = {std::string(row.initial), "--" + std::string(row.key), Source::standard};
      }
    }
  }

  const Value& operator[](std::string_view key) const { return values_.find(key)->second; }
  Value& at(std::string_view key) { return values_.find(key)->second; }
  bool given(std::string_view key) const { return (*this)[key].source != Source::standard; }

 private:
  /// POD_IP is set by others too (Kubernetes); as Paddle does, only an address counts.
  static bool ignored(const Setting& row, const std::string& value) {
    return value.empty() || (row.key == "host" && value.find('.') == std::string::npos);
  }

  std::map<std::string_view, Value> values_;
};

[[noreturn]] void refuse(const Value& value, const std::string& wanted, std::string hint = {}) {
  throw Error(value.source == Source::environment ? ErrorKind::config : ErrorKind::usage,
              value.name + " is '" + printable(value.text) + "': " + wanted, std::move(hint));
}

[[noreturn]] void refuse_hosts(const Value& value) {
  refuse(value, "a job is not on more than one host yet",
         "leave " + value.name + " out to run on this host alone");
}

std::int64_t whole_number(const Value& value, std::int64_t least, std::int64_t most) {
  const auto number = parse_integer(value.text);
  if (!number || *number < least || *number > most)
    refuse(value,
           "a whole number from " + std::to_string(least) + " to " + std::to_string(most) + " is needed");
  return *number;
}

std::optional<int> process_count(const Values& values, std::string_view key) {
  if (!values.given(key)) return std::nullopt;
  return static_cast<int>(whole_number(values[key], 1, kMostProcesses));
}

std::uint16_t port(const Value& value) {
  return static_cast<std::uint16_t>(whole_number(value, 1, 65535));
}

bool truth(const Value& value) {
  std::string text = value.text;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* word : {"y", "yes", "t", "true", "on", "1"}) {
    if (text == word) return true;
  }
  for (const char* word : {"n", "no", "f", "false", "off", "0"}) {
    if (text == word) return false;
  }
  refuse(value, "True or False is needed");
}

std::chrono::milliseconds duration(const Value& value) {
  const auto ms = parse_duration_ms(value.text);
  if (!ms) refuse(value, "a number of seconds is needed", "write for example " + value.name + "=2.5");
  return std::chrono::milliseconds(*ms);
}

std::vector<Endpoint> endpoint_list(const Values& values, std::string_view key) {
  const Value& value = values[key];
  if (!values.given(key)) return {};
  if (value.text.empty()) refuse(value, "a list of endpoints is needed", "write it as HOST:PORT,HOST:PORT");
  return while_doing("reading " + value.name, [&] { return parse_endpoint_list(value.text); });
}

/// A name that becomes part of file names: no separators, no leading dot or dash, nothing a terminal would
/// act on.
std::string file_safe_name(const Value& value) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  const std::string& text = value.text;
  if (text.empty() || text.size() > kLongestName || text.front() == '.' || text.front() == '-' ||
      !std::all_of(text.begin(), text.end(), allowed))
    refuse(value, "it becomes part of file names",
           "use 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit");
  return text;
}

LogLevel log_level(const Value& value) {
  std::string text = value.text;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const LogLevel level :
       {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error, LogLevel::critical}) {
    if (text == to_string(level)) return level;
  }
  if (text == "WARN") return LogLevel::warning;
  refuse(value, "there is no such level", "use DEBUG, INFO, WARNING, ERROR or CRITICAL");
}

std::vector<std::string> device_list(const Value& value) {
  std::vector<std::string> devices = split(value.text, ',');
  std::set<std::string> seen;
  for (const std::string& device : devices) {
    if (device.empty() || device.find_first_of(" \t\n") != std::string::npos)
      refuse(value, "a device has no name", "write it as 0,1,2");
    if (!seen.insert(device).second) refuse(value, "device " + printable(device) + " is in the list twice");
  }
  if (devices.empty()) refuse(value, "a list of devices is needed", "write it as 0,1,2");
  return devices;
}

std::string host_address(const Value& value) {
  while_doing("reading " + value.name, [&] {
    const bool ipv6 = value.text.find(':') != std::string::npos;
    parse_endpoint(ipv6 ? "[" + value.text + "]:1" : value.text + ":1");
  });
  return value.text;
}

Mode resolve_mode(const Values& values, std::vector<std::string>& notes) {
  const Value& asked = values["run_mode"];
  const char* reason = nullptr;
  for (const char* key : {"server_num", "servers", "trainer_num", "trainers"}) {
    if (!reason && values.given(key)) reason = key;
  }
  if (!values.given("run_mode")) return reason ? Mode::ps : Mode::collective;
  if (asked.text == "ps") return Mode::ps;
  if (asked.text == "collective") {
    if (reason)
      notes.push_back("run_mode is ps, not collective, because " + values[reason].name + " is given");
    return reason ? Mode::ps : Mode::collective;
  }
  refuse(asked, "there is no such mode", "use collective or ps");
}

void refuse_what_needs_hosts(const Values& values, const Environ& environ) {
  if (values.given("nnodes")) {
    const std::vector<std::string> range = split(values["nnodes"].text, ':');
    if (range.empty() || range.size() > 2)
      refuse(values["nnodes"], "a number of hosts, or MIN:MAX, is needed");
    std::int64_t least = 1;
    for (const std::string& part : range) {
      const auto number = parse_integer(part);
      if (!number || *number < least || *number > 65536)
        refuse(values["nnodes"], "a number of hosts, or MIN:MAX, is needed");
      least = *number;
    }
    if (least > 1) refuse_hosts(values["nnodes"]);
  }
  if (values.given("rank") && whole_number(values["rank"], -1, 65535) > 0) refuse_hosts(values["rank"]);
  if (values["master"].text.starts_with("etcd://")) refuse_hosts(values["master"]);
  if (values.given("ips") && split(values["ips"].text, ',').size() > 1) refuse_hosts(values["ips"]);
  for (const char* name : {"PADDLE_TRAINER_ENDPOINTS", "DISTRIBUTED_TRAINER_ENDPOINTS"}) {
    const std::string* list = environ.find(name);
    std::set<std::string> hosts;
    for (const std::string& endpoint : split(list ? *list : "", ','))
      hosts.insert(endpoint.substr(0, endpoint.rfind(':')));
    if (hosts.size() > 1) refuse_hosts({*list, name, Source::environment});
  }
}

void read_processes(const Values& values, JobConfig& config) {
  config.server_num = process_count(values, "server_num");
  config.trainer_num = process_count(values, "trainer_num");
  config.nproc_per_node = process_count(values, "nproc_per_node");
  config.servers = endpoint_list(values, "servers");
  config.trainers = endpoint_list(values, "trainers");
  if (values.given("devices")) config.devices = device_list(values["devices"]);

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

void read_network(const Values& values, JobConfig& config) {
  if (values.given("host")) config.host = host_address(values["host"]);
  if (values.given("ips")) config.host = host_address(values["ips"]);
  const std::uint16_t start = port(values["start_port"]);
  if (values.given("start_port") || values.given("ips")) config.start_port = start;
  config.gloo_port = port(values["gloo_port"]);
  config.gloo_port_chosen = values.given("gloo_port");
  config.with_gloo = values["with_gloo"].text;
  if (config.with_gloo != "0" && config.with_gloo != "1" && config.with_gloo != "2")
    refuse(values["with_gloo"], "0, 1 or 2 is needed");
}

void read_faults(const Values& values, JobConfig& config) {
  config.hang.timeout = duration(values["hang_timeout"]);
  if (values.given("hang_by")) {
    const auto signs = parse_hang_signs(values["hang_by"].text);
    if (!signs)
      refuse(values["hang_by"], "a list of heartbeat, log and cpu is needed", "write for example log,cpu");
    if (config.hang.timeout.count() == 0)
      refuse(values["hang_by"], "nobody looks for signs of life", "add for example --hang_timeout=600");
    config.hang.by = *signs;
  }
  if (values.given("inject")) config.inject = parse_injections(values["inject"].text);
  if (values.given("inject_seed"))
    config.inject_seed = static_cast<std::uint64_t>(
        whole_number(values["inject_seed"], 0, std::numeric_limits<std::int64_t>::max()));
}

void read_run(const Values& values, JobConfig& config) {
  if (values.given("python")) config.python = values["python"].text;
  if (values.given("compat")) {
    if (values["compat"].text != "paddle")
      refuse(values["compat"], "there is no such package", "use --compat=paddle");
    config.compat_paddle = true;
  }
  config.ready_timeout = duration(values["ready_timeout"]);
  config.grace = duration(values["grace"]);
  if (values.given("dry_run")) {
    const std::string& format = values["dry_run"].text;
    if (format == "text")
      config.dry_run = DryRun::text;
    else if (format == "json")
      config.dry_run = DryRun::json;
    else if (format == "sh")
      config.dry_run = DryRun::sh;
    else
      refuse(values["dry_run"], "there is no such format", "use text, json or sh");
  }
  config.max_restart = static_cast<int>(whole_number(values["max_restart"], 0, 1'000'000));
  whole_number(values["elastic_level"], -1, 2);
  whole_number(values["elastic_timeout"], 0, 1'000'000);
}

void read_logs(const Values& values, JobConfig& config) {
  config.job_id = file_safe_name(values["job_id"]);
  config.log_dir = values["log_dir"].text;
  if (config.log_dir.empty()) refuse(values["log_dir"], "the logs need a directory");
  config.log_overwrite = truth(values["log_overwrite"]);
  config.log_level = log_level(values["log_level"]);
}

std::vector<ListedSetting> make_listing(Values values, const JobConfig& config) {
  values.at("run_mode").text = to_string(config.mode);
  values.at("log_level").text = to_string(config.log_level);
  for (const char* key : {"log_overwrite", "enable_gpu_log", "legacy", "sort_ip"})
    values.at(key).text = truth(values[key]) ? "True" : "False";
  std::vector<ListedSetting> listing[2];
  for (const Setting& row : settings())
    listing[row.ours].push_back({std::string(row.key), values[row.key].text, values[row.key].source});
  listing[0].push_back({"training_script", config.script, Source::flag});
  listing[0].push_back({"training_script_args", python_repr(config.script_args), Source::flag});
  for (auto& part : listing)
    std::sort(part.begin(), part.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  listing[0].insert(listing[0].end(), listing[1].begin(), listing[1].end());
  return listing[0];
}

}  // namespace

JobConfig make_job_config(const Options& options, const Environ& environ) {
  if (!options.script)
    throw Error(ErrorKind::usage, "no script is given",
                "write it last, for example: fleetrun --server_num=1 --trainer_num=2 train.py; fleetrun "
                "--help shows more");
  JobConfig config;
  const Values values(options, environ, config.notes);
  config.script = *options.script;
  config.script_args = options.script_args;
  for (const char* key : {"auto_parallel_config", "auto_tuner_json"}) {
    if (values.given(key)) refuse(values[key], "fleetrun has no tuner", "leave " + values[key].name + " out");
  }
  refuse_what_needs_hosts(values, environ);
  config.mode = resolve_mode(values, config.notes);
  read_processes(values, config);
  read_network(values, config);
  read_logs(values, config);
  read_run(values, config);
  read_faults(values, config);
  config.auto_cluster = truth(values["auto_cluster_config"]) ? "1" : "0";
  config.listing = make_listing(values, config);
  return config;
}

std::string_view to_string(LogLevel level) noexcept {
  constexpr std::string_view kNames[] = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};
  return kNames[static_cast<int>(level)];
}

int servers_of(const JobConfig& config) noexcept {
  if (config.mode != Mode::ps) return 0;
  return config.servers.empty() ? config.server_num.value_or(1) : static_cast<int>(config.servers.size());
}

}  // namespace fleetrun::launcher
