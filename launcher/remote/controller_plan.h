// What is to happen on every host of a list: decided here, before anybody logs in anywhere. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/model/host_list.h"
#include "launcher/model/job_config.h"
#include "launcher/remote/launch_order.h"
#include "launcher/remote/own_host.h"

namespace fleetrun::launcher::remote {

struct HostPart {
  RemoteHost host;
  bool here = false;                     // this machine: started without ssh
  LaunchOrder order;                     // without what is only known at the time: secret and coordinator
  std::optional<int> trainers, servers;  // nullopt: the host's devices say
  std::optional<int> first_trainer, first_server;  // ranks; nullopt: it is not known before the hosts say it

  bool operator==(const HostPart&) const = default;
};

struct ControllerPlan {
  std::vector<HostPart> hosts;  // by node rank
  NodeCount nodes;
  bool elastic = false;
  Mode mode = Mode::collective;
  bool raw = false;  // what is shown is one process's output, as it is
  std::vector<std::string> ssh;
  std::vector<std::string> srun;  // instead, in an allocation of Slurm's: one command for all hosts
  std::string program;            // fleetrun on the hosts
  int window = 8;
  std::string log_dir;   // here, for what is brought back
  std::string on_event;  // the user's command
  bool collect_logs = false;
  bool ships = false;  // fleetrun and the files travel there
  std::vector<std::string> notes;

  bool operator==(const ControllerPlan&) const = default;
};

/// Where the plan is made.
struct ControllerPlace {
  std::string directory, program;  // working directory, and fleetrun, both absolute
  OwnHost own;
};

/// The list as the configuration has it, files read. Throws: Error(config), see launcher/model/host_list.
RemoteHosts hosts_of(const HostList& list);

/// `asked` before a job file was applied. A list that names servers makes the job a parameter-server job.
/// Throws: Error(usage|config) for what does not go together with a list of hosts: fewer of them than
/// --nnodes, devices in a parameter-server job, --detach …
ControllerPlan make_controller_plan(const Options& asked, const JobConfig& given, const Environ& environ,
                                    const ControllerPlace& place);

/// For --dry-run: what would happen on every host, for people.
std::string to_text(const ControllerPlan& plan);

}  // namespace fleetrun::launcher::remote
