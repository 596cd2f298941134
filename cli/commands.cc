#include "cli/commands.h"

#include <algorithm>
#include <utility>

#include "cli/agent_command.h"
#include "cli/attach_command.h"
#include "cli/check_command.h"
#include "cli/complete_command.h"
#include "cli/data_command.h"
#include "cli/doctor_command.h"
#include "cli/export_command.h"
#include "cli/help.h"
#include "cli/init_command.h"
#include "cli/k8s_command.h"
#include "cli/list_command.h"
#include "cli/logs_command.h"
#include "cli/plot_command.h"
#include "cli/predict_command.h"
#include "cli/ps_command.h"
#include "cli/report_command.h"
#include "cli/secret_command.h"
#include "cli/slurm_command.h"
#include "cli/status_command.h"
#include "cli/stop_command.h"
#include "cli/top_command.h"
#include "cli/torchrun_command.h"
#include "cli/trace_command.h"
#include "cli/ui_command.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

using enum Command::Kind;

constexpr Command kCommands[] = {
    {"init", "write a job file, by asking", run_init_command, acts},
    {"list", "list the jobs that run here", run_list_command, shows},
    {"status", "show how a running job is doing", run_status_command, shows},
    {"top", "the same, kept up to date", run_top_command, shows},
    {"logs", "show the logs of a job", run_logs_command, shows},
    {"ui", "show the jobs in a browser", run_ui_command, acts},
    {"attach", "look on at a running job until it ends", run_attach_command, shows},
    {"stop", "end a running job", run_stop_command, acts},
    {"ps", "look into the parameter servers of a running job", run_ps_command, shows},
    {"check", "say what of a script is not here, before it runs", run_check_command, shows},
    {"data", "look into training data, check it, convert it", run_data_command, shows},
    {"predict", "compute a saved model over files", run_predict_command, shows},
    {"trace", "run a job and draw what its time goes into", run_trace_command, launches},
    {"plot", "plot the variables that were fetched in training", run_plot_command, acts},
    {"export", "give a job to TensorBoard or OpenTelemetry", run_export_command, acts},
    {"report", "pack what is known of a job into one file", run_report_command, acts},
    {"replay", "go through a reported job again", run_replay_command, shows},
    {"doctor", "say what keeps hosts from running a job", run_doctor_command, acts},
    {"torchrun", "run a job of PyTorch by torchrun's command line", run_torchrun_command, acts},
    {"secret", "print the secret of one job, for a host of that job alone", run_secret_command, acts},
    {"slurm", "print or submit a batch script for Slurm", run_slurm_command, launches},
    {"k8s", "print manifests for Kubernetes", run_k8s_command, launches},
    {"help", "say what a command or a flag does", run_help_command, shows},
    {"version", "say which version this is", run_version_command, shows},
    {"agent", "", run_agent_command, acts},
    {"complete", "", run_complete_command, shows},
};

constexpr std::size_t shown_commands() {
  std::size_t count = 0;
  while (count < std::size(kCommands) && !kCommands[count].summary.empty()) ++count;
  return count;
}

}  // namespace

std::span<const Command> commands() noexcept {
  return {kCommands, shown_commands()};
}

const Command* find_command(const std::vector<std::string>& arguments) noexcept {
  if (arguments.empty()) return nullptr;
  const auto found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                  [&](const Command& command) { return command.name == arguments.front(); });
  return found == std::end(kCommands) ? nullptr : found;
}

std::optional<std::string> nearest_command(std::string_view word) {
  // What others call it.
  constexpr std::pair<std::string_view, const char*> kSynonyms[] = {
      {"restart", "ui"}, {"signal", "stop"}, {"kill", "stop"}, {"jobs", "list"}};
  for (const auto& [theirs, ours] : kSynonyms)
    if (word == theirs) return ours;
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  return nearest(word, names);
}

}  // namespace fleetrun::cli
