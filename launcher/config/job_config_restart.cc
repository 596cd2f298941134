// Who is started again, and how often. Nothing is, unless the user asks: by --max_restart, --restart,
// --restart_budget, or an elastic level of 0 or more, which is how Paddle's launcher is asked.
#include <algorithm>

#include "launcher/config/job_config_values.h"

namespace fleetrun::launcher {
namespace {

constexpr int kMaxRestarts = 1'000'000;
constexpr int kMaxSpares = 64, kUsualSpares = 1;

void read_budget(const Value& value, RestartBudget& budget) {
  for (const auto& [cause, text] : read_pairs(value, "crash=3,oom=1,preemption=10,hang=2")) {
    std::optional<int>* field =
        read_word<std::optional<int>*>(part_of(value, cause), {{"crash", &budget.crash},
                                                               {"oom", &budget.oom},
                                                               {"preemption", &budget.preemption},
                                                               {"hang", &budget.hang}});
    *field = static_cast<int>(read_whole_number(part_of(value, text), 0, kMaxRestarts));
  }
}

void read_ps_checkpoint(const Values& values, JobConfig& config) {
  if (values.given("ps_checkpoint")) {
    config.ps_checkpoint = values["ps_checkpoint"].text;
    if (config.ps_checkpoint->empty())
      refuse(values["ps_checkpoint"], "a directory is wanted", "name one that the servers may write to");
    if (config.ps_checkpoint->find("://") != std::string::npos)
      refuse(values["ps_checkpoint"], "a directory of the servers' hosts is wanted",
             "save tables there from the script, by --ps_upload_cmd");
  }
  config.ps_checkpoint_found = read_word<std::string>(
      values["ps_checkpoint_found"],
      {{"refuse", "refuse"}, {"resume", "resume"}, {"require", "require"}, {"replace", "replace"}});
  config.ps_checkpoint_interval = read_duration(values["ps_checkpoint_interval"]);
  config.ps_log_sync =
      read_word<std::string>(values["ps_log_sync"], {{"process", "process"}, {"power", "power"}});
  config.ps_replicas = static_cast<int>(read_whole_number(values["ps_replicas"], 0, 1));
  if (values.given("ps_upload_cmd")) config.ps_upload_cmd = values["ps_upload_cmd"].text;
  if (values.given("ps_download_cmd")) config.ps_download_cmd = values["ps_download_cmd"].text;
}

}  // namespace

void read_restart(const Values& values, JobConfig& config) {
  if (values.given("restart")) {
    for (const auto& [role, what] : read_pairs(values["restart"], "server=process,trainer=group")) {
      check_role(values["restart"], role, config);
      config.restart[role] =
          read_word<RestartScope>(part_of(values["restart"], what), {{"group", RestartScope::group},
                                                                     {"process", RestartScope::process},
                                                                     {"never", RestartScope::nobody}});
    }
  }
  if (values.given("restart_budget")) read_budget(values["restart_budget"], config.restart_budget);
  const auto max = static_cast<int>(read_whole_number(values["max_restart"], 0, kMaxRestarts));
  const bool elastic = read_whole_number(values["elastic_level"], -1, 2) >= 0;
  const bool scoped = std::any_of(config.restart.begin(), config.restart.end(),
                                  [](const auto& role) { return role.second != RestartScope::nobody; });
  read_ps_checkpoint(values, config);
  if (values.given("max_restart") || values.given("restart_budget") || elastic || scoped)
    config.max_restart = max;
  if ((config.ps_checkpoint || config.ps_replicas > 0 || config.most_servers) && !config.max_restart) {
    // Asked for servers: the failure of a trainer ends the job, as it does without.
    config.max_restart = max;
    config.restart.try_emplace("trainer", RestartScope::nobody);
  }
  config.replaces_failed = read_word<bool>(values["on_failure"], {{"restart", false}, {"replace", true}});
  if (values.given("spares") && !config.replaces_failed)
    refuse(values["spares"], "nobody takes the place of a trainer that fails",
           "add --on_failure=replace, or leave " + values["spares"].name + " out");
  config.spares = !values.given("spares")
                      ? kUsualSpares
                      : static_cast<int>(read_whole_number(values["spares"], 0, kMaxSpares));
  config.restart_backoff = read_duration(values["restart_backoff"]);
  config.healthy_after = read_duration(values["healthy_after"]);
  config.same_failure_limit =
      static_cast<int>(read_whole_number(values["same_failure_limit"], 0, kMaxRestarts));
  if (config.same_failure_limit == 1)
    refuse(values["same_failure_limit"], "one failure is not the same as another",
           "0 never gives up early; 2 does at the second of two");
}

void check_replacement(const Values& values, const JobConfig& config) {
  if (!config.replaces_failed) return;
  const Value& asked = values["on_failure"];
  if (config.mode != Mode::collective)
    refuse(asked, "a " + std::string(to_string(config.mode)) + " job has no trainers that can be replaced",
           config.mode == Mode::ps ? "leave it out: --max_restart starts a trainer of a ps job again alone"
                                   : "leave it out, or use --max_restart");
  if (config.rendezvous.kind != Rendezvous::Kind::none || config.host_list.given())
    refuse(asked, "the job is on several hosts, and processes take each other's places on one",
           "leave it out, and use --max_restart or --nnodes=MIN:MAX");
  if (!config.restart.empty())
    refuse(values["restart"], "--on_failure=replace says who is started again", "leave one of the two out");
}

}  // namespace fleetrun::launcher
