#include "cli/agent_command.h"

#include "cli/launch.h"
#include "launcher/remote/agent.h"
#include "launcher/remote/srun_task.h"
#include "runtime/base/error.h"

namespace fleetrun::cli {

int run_agent_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const std::string what = arguments.size() == 1 ? arguments.front() : "";
  if (what == "--stdin") return launcher::remote::run_agent(environment);
  if (what == "--task") return launcher::run_srun_task(environment);
  if (what == "--node") {
    const launcher::remote::LaunchOrder order = launcher::remote::take_order();
    return launch(launcher::remote::config_of(order, environment), environment);
  }
  throw Error(ErrorKind::usage, "fleetrun agent is started by other fleetruns, with --stdin",
              "start a job on other hosts with --hosts=h1,h2 or --hostfile=FILE");
}

}  // namespace fleetrun::cli
