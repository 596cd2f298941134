// Order of precedence: flag, environment, default. Mode: ps where run_mode says so or servers, trainers or
// their numbers are given; collective or rpc otherwise.
#include "launcher/config/make_job_config.h"

#include <algorithm>

#include "launcher/config/job_config_values.h"
#include "launcher/model/job_settings.h"
#include "launcher/net/etcd_address.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

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
  if (asked.text == "rpc") {
    if (reason) notes.push_back("run_mode is ps, not rpc, because " + values[reason].name + " is given");
    return reason ? Mode::ps : Mode::rpc;
  }
  refuse(asked, "there is no such mode", "use collective, ps or rpc");
}

/// Paddle's settings as its launcher lists them, and of the others those that were given.
std::vector<ListedSetting> make_listing(Values values, const JobConfig& config) {
  values.at("run_mode").text = to_string(config.mode);
  values.at("log_level").text = to_string(config.log_level);
  for (const char* key : {"log_overwrite", "enable_gpu_log", "legacy", "sort_ip"})
    values.at(key).text = read_truth(values[key]) ? "True" : "False";
  for (const char* key : {"master", "rdzv_endpoint"}) values.at(key).text = without_login(values[key].text);
  std::vector<ListedSetting> listing, others;
  for (const Setting& row : settings()) {
    auto& part = row.from == From::paddle ? listing : others;
    if (row.from == From::paddle || values.given(row.key))
      part.push_back({std::string(row.key), values[row.key].text, values[row.key].source});
  }
  listing.push_back({"training_script", config.script, Source::flag});
  listing.push_back({"training_script_args", python_repr(config.script_args), Source::flag});
  for (auto* part : {&listing, &others})
    std::sort(part->begin(), part->end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  listing.insert(listing.end(), others.begin(), others.end());
  return listing;
}

}  // namespace

void check_role(const Value& value, std::string_view role, const JobConfig& config) {
  if (config.file) return;  // its roles are checked when they are planned
  if (role == "trainer" || (role == "server" && config.mode == Mode::ps)) return;
  refuse(value, "the job has no role '" + printable(role) + "'",
         config.mode == Mode::ps ? "its roles are server and trainer" : "its role is trainer");
}

JobConfig make_job_config(const Options& options, const Environ& environ) {
  JobConfig config;
  config.notes = options.notes;
  const Values values(options, environ, config.notes);
  for (const Setting& row : settings()) {
    if (row.kind == Kind::refused && values.given(row.key))
      refuse(values[row.key], std::string(row.implied), "leave " + values[row.key].name + " out");
  }
  if (!options.script)
    throw Error(ErrorKind::usage, "no script is given",
                "write it last, for example: fleetrun --server_num=1 --trainer_num=2 train.py; fleetrun "
                "--help shows more");
  config.script = *options.script;
  config.script_args = options.script_args;
  config.file = options.file;
  config.mode = resolve_mode(values, config.notes);
  if (config.file && !values.given("trainer_num") && !values.given("nproc_per_node")) config.mode = Mode::own;
  read_processes(values, config);
  read_network(values, config);
  read_logs(values, config);
  read_run(values, config);
  if (const std::string* limit = environ.find("PADDLE_ENV_LIMIT_LEN"))
    config.longest_list = static_cast<std::size_t>(
        read_whole_number({*limit, "PADDLE_ENV_LIMIT_LEN", Source::environment}, 1, 1 << 30));
  read_watch(values, config);
  read_restart(values, config);
  read_hosts(values, environ, config);
  check_replacement(values, config);
  check_moving_servers(values, config);
  config.listing = make_listing(values, config);
  return config;
}

}  // namespace fleetrun::launcher
