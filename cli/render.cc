#include "cli/render.h"

#include "launcher/host/read_topology.h"
#include "launcher/logs/log_files.h"
#include "launcher/plan/attempt_overlay.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

using launcher::Plan;
using launcher::ProcessSpec;

}  // namespace

std::string binding_line(const ProcessSpec& process) {
  return "cpus " + launcher::cpu_list(process.cpus) + ", memory node " +
         launcher::cpu_list(process.memory_nodes);
}

std::string to_text(const Plan& plan) {
  std::string text = "job " + plan.job_id + ", mode " + std::string(to_string(plan.mode)) + ", pod " +
                     plan.pod_name + ", " + std::to_string(plan.processes.size()) + " processes\n";
  if (!plan.on_event.empty()) text.append("on event: ").append(printable(plan.on_event, 4000)).append("\n");
  for (const ProcessSpec& process : plan.processes) {
    text.append("\n").append(process.name);
    if (!process.identity.servers.empty() || !process.identity.trainers.empty())
      text.append(" at ").append(to_string(self_endpoint(process.identity)));
    text.append("\n");
    text.append("  command  ").append(shell_words(process.argv)).append("\n");
    text.append("  program  ").append(process.program).append("\n");
    text.append("  log      ").append(plan.log_dir_shown).append("/").append(process.log_name);
    text.append(" = ").append(process.log_alias).append("\n");
    if (!process.cpus.empty()) text.append("  bound to ").append(binding_line(process)).append("\n");
    for (const auto& [name, value] : process.environment.values())
      text.append("  env      ").append(name).append("=").append(shell_quoted(value)).append("\n");
  }
  return text;
}

std::string to_shell(const Plan& plan) {
  const std::string directory = launcher::attempt_directory(plan, 0);
  std::string text = "#!/bin/sh\n# Job " + plan.job_id + ", mode " + std::string(to_string(plan.mode)) +
                     ": starts what fleetrun would start. It neither watches nor stops anything.\nmkdir -p " +
                     shell_quoted(directory) + "\n";
  for (const ProcessSpec& process : plan.processes) {
    text.append("\n# ").append(process.name).append("\n(\n");
    text.append("  cd ").append(shell_quoted(process.cwd)).append(" || exit\n");
    std::vector<std::string> unset = process.unset;
    for (const launcher::NamedDescriptor& descriptor : process.descriptors)
      unset.push_back(descriptor.variable);
    for (const auto& [name, value] : process.environment.values()) {
      const bool given = launcher::is_given_by_anybody(process, name);
      text.append(given ? "  export " : "  # fleetrun itself gives: ").append(name).append("=");
      text.append(given ? shell_quoted(value) : value).append("\n");
    }
    text.append("  unset ").append(join(unset, " ")).append("\n");
    std::vector<std::string> argv = process.argv;
    argv.front() = process.program;
    if (!process.cpus.empty()) argv.insert(argv.begin(), {"taskset", "-c", launcher::cpu_list(process.cpus)});
    text.append("  exec ").append(shell_words(argv)).append("\n) </dev/null ");
    text.append(">").append(shell_quoted(directory + "/" + process.log_name));
    text.append(" 2>&1 &\n");
  }
  return text.append("\nwait\n");
}

}  // namespace fleetrun::cli
