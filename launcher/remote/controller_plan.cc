#include "launcher/remote/controller_plan.h"

#include <algorithm>

#include "launcher/host/find_program.h"
#include "launcher/remote/srun_fan_out.h"
#include "launcher/remote/ssh_command.h"
#include "launcher/schedulers/node_file.h"
#include "launcher/schedulers/slurm_allocation.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/version.h"

namespace fleetrun::launcher::remote {
namespace {

constexpr int kWindow = 8;

[[noreturn]] void refuse(const std::string& what, std::string hint) {
  throw Error(ErrorKind::usage, what, std::move(hint));
}

std::string hosts_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " host" : " hosts");
}

/// What a list of hosts cannot be combined with.
void check_flags(const JobConfig& config) {
  if (config.detach)
    refuse("--detach is given, and a job over a list of hosts stays in the foreground",
           "run it under nohup or in tmux, or use --master on each host");
  if (config.standard_input.kind == StandardInput::Kind::trainer)
    refuse("--stdin is given, and standard input does not reach trainers on other hosts", "leave it out");
  if (config.pty) refuse("--pty is given, and no terminal reaches other hosts", "leave it out");
  if (config.dry_run == DryRun::json || config.dry_run == DryRun::sh)
    refuse("a job over a list of hosts is shown as text only", "use --dry-run=text");
  if (!config.servers.empty() || !config.trainers.empty())
    refuse("--servers or --trainers is given beside a list of hosts",
           "write h1:servers=1,h2:trainers=2 instead");
  if (config.host_list.ship && config.host_list.slurm)
    refuse("--ship is given in an allocation of Slurm's, and it travels over ssh",
           "list the hosts, --hosts=$(scontrol show hostnames | paste -sd,), or use sbcast");
  if (config.rendezvous.kind == Rendezvous::Kind::etcd || config.rendezvous.master.port != 0)
    refuse("--master or a similar flag is given beside a list of hosts: the rendezvous is here",
           "give one of them");
}

void check_host(const RemoteHost& host, const JobConfig& config) {
  if (host.devices && config.mode == Mode::ps)
    refuse(
        host.where + ": devices of " + written(host) + " are chosen, and the job is a parameter-server job",
        "devices are for collective jobs");
  if ((host.slots || host.servers) && config.file)
    refuse(host.where + ": " + written(host) +
               " has a number of trainers, and there is a job file, whose roles say that",
           "leave the number out");
}

/// Whether the list makes the job a parameter-server job, as --server_num would.
bool has_servers(const RemoteHosts& list) {
  return std::any_of(list.hosts.begin(), list.hosts.end(),
                     [](const RemoteHost& host) { return host.servers.value_or(0) > 0; });
}

/// localhost, the host's name and its addresses are one host.
void merge_own(RemoteHosts& list, const OwnHost& own) {
  RemoteHost* first = nullptr;
  std::vector<RemoteHost> hosts;
  hosts.reserve(list.hosts.size());
  for (RemoteHost& host : list.hosts) {
    const bool is_this = own.names.contains(host_key(host.name)) || own_address(own, host.name);
    if (is_this && first) {
      count_again(*first, host);
      list.notes.push_back(written(*first) + " and " + written(host) +
                           " are this host: " + std::to_string(*first->slots) + " trainers are counted here");
      continue;
    }
    hosts.push_back(std::move(host));
    if (is_this) first = &hosts.back();
  }
  list.hosts = std::move(hosts);
}

NodeCount nodes_of(const JobConfig& config, const Options& options, std::size_t hosts) {
  const NodeCount& asked = config.rendezvous.nodes;
  const int count = static_cast<int>(hosts);
  const bool given = options.values.contains("nnodes") || asked != NodeCount{};
  if (!given) return {config.rendezvous.elastic ? 1 : count, count, 1};
  if (asked.min > count)
    refuse("--nnodes asks for " + hosts_text(static_cast<std::size_t>(asked.min)) + ", and the list has " +
               std::to_string(count),
           "add hosts to the list, or leave --nnodes out");
  return asked;
}

std::optional<int> trainers_of(const RemoteHost& host, const JobConfig& config) {
  if (host.slots) return host.slots;
  if (config.mode == Mode::ps) return config.trainer_num.value_or(1);
  if (config.nproc_per_node) return config.nproc_per_node;
  if (config.devices) return static_cast<int>(config.devices->size());
  return std::nullopt;
}

void count_processes(HostPart& part, const JobConfig& config) {
  part.trainers = trainers_of(part.host, config);
  part.servers = config.mode != Mode::ps ? 0
                 : part.host.servers     ? part.host.servers
                                         : config.server_num.value_or(1);
}

/// Ranks are prefix sums, as far as the numbers before them are known.
void count_ranks(std::vector<HostPart>& parts) {
  std::optional<int> trainers = 0, servers = 0;
  const auto add = [](std::optional<int>& sum, const std::optional<int>& more) {
    sum = sum && more ? std::optional<int>(*sum + *more) : std::nullopt;
  };
  for (HostPart& part : parts) {
    part.first_trainer = trainers;
    part.first_server = servers;
    add(trainers, part.trainers);
    add(servers, part.servers);
  }
}

void check_roles(const std::vector<HostPart>& parts, const JobConfig& config) {
  if (config.mode != Mode::ps || config.file) return;
  const auto none = [&](std::optional<int> HostPart::*count) {
    return std::all_of(parts.begin(), parts.end(), [&](const HostPart& part) { return part.*count == 0; });
  };
  if (none(&HostPart::trainers))
    refuse("no host of the list has a trainer", "write h2:trainers=2 for a host that trains");
  if (none(&HostPart::servers))
    refuse("no host of the list has a server", "write h1:servers=1 for a host that serves");
}

/// A rank that no host has, where the ranks of all are known.
void check_shown(const std::vector<HostPart>& parts, const JobConfig& config) {
  const HostPart& last = parts.back();
  if (!last.first_trainer || !last.trainers || config.file) return;
  const int size = *last.first_trainer + *last.trainers;
  for (const int rank : config.show.trainers) {
    if (rank >= size)
      refuse("--show names trainer " + std::to_string(rank) + ", and there are " + std::to_string(size) +
                 " of them",
             "ranks begin at 0");
  }
}

/// Whose output is shown, where that is one process's: the first trainer of the first host that has one.
void choose_shown(std::vector<HostPart>& parts) {
  bool found = false;
  for (HostPart& part : parts) {
    const bool first = !found && part.trainers != 0;
    found = found || first;
    part.order.values["show"] = first ? "first" : "none";
  }
}

/// With what Slurm's signals mean.
std::string signals_text(const JobConfig& config) {
  std::vector<std::string> entries;
  for (const auto& [signal, action] : config.signal_map) entries.push_back(signal + "=" + action);
  return join(entries, ",");
}

LaunchOrder order_for(const RemoteHost& host, const Options& options, const JobConfig& config,
                      const Environ& environ, const ControllerPlace& place) {
  LaunchOrder order;
  order.version = FLEETRUN_VERSION;
  order.values = portable_values(options, environ);
  if (config.host_list.slurm) order.values["signal_map"] = signals_text(config);
  order.values["log_dir"] = config.log_dir + "/" + host.name;
  order.script = options.script;
  order.script_args = options.script_args;
  order.environment = exported_variables(config.host_list.exported, environ);
  order.cwd = config.host_list.chdir.empty() ? place.directory : config.host_list.chdir;
  order.node_name = host.name;
  order.trainers = host.slots;
  order.servers = host.servers;
  order.devices = host.devices;
  return order;
}

/// The user's own number of trainers counts more than a scheduler's.
void prefer_own_number(const JobConfig& config, std::vector<RemoteHost>& hosts) {
  const bool said = config.nproc_per_node || config.trainer_num || config.devices || config.file ||
                    config.trainers_by != TrainersBy::number;
  for (RemoteHost& host : hosts) {
    if (said) host.slots.reset();
  }
}

RemoteHosts select_hosts(RemoteHosts found, const HostList& list) {
  if (list.include && list.exclude) refuse("--include and --exclude are both given", "use one of them");
  if (list.include) found.hosts = include_hosts(found.hosts, *list.include);
  if (list.exclude) found.hosts = exclude_hosts(found.hosts, *list.exclude);
  return found;
}

/// The hosts of the allocation, with an agent on each by `srun`.
RemoteHosts hosts_of_slurm(const JobConfig& config, const Environ& environ, std::vector<std::string>& srun) {
  const auto allocation = slurm_allocation(environ);
  if (!allocation) refuse("this is no longer an allocation of Slurm's", "");
  RemoteHosts found;
  found.hosts = slurm_hosts(*allocation);
  srun = srun_command(*allocation, found.hosts.size());
  prefer_own_number(config, found.hosts);
  return found;
}

RemoteHosts hosts_of_node_file(const Options& options, const Environ& environ, JobConfig& config) {
  auto file = node_file(environ);
  if (!file || file->hosts.hosts.empty()) refuse("the scheduler's list of hosts is gone", "");
  prefer_own_number(config, file->hosts.hosts);
  const bool said = options.values.contains("ssh") || environ.has("FLEETRUN_SSH");
  if (!said && !file->ssh.empty() && find_on_path(file->ssh, environ.value_or("PATH", "")))
    config.host_list.ssh = file->ssh;
  return select_hosts(std::move(file->hosts), config.host_list);
}

}  // namespace

RemoteHosts hosts_of(const HostList& list) {
  return select_hosts(
      list.hosts ? parse_host_list(*list.hosts, "--hosts") : read_hostfile(list.hostfile.value_or("")), list);
}

ControllerPlan make_controller_plan(const Options& asked, const JobConfig& given, const Environ& environ,
                                    const ControllerPlace& place) {
  Options options = asked;
  JobConfig config = given;
  check_flags(config);
  ControllerPlan plan;
  RemoteHosts list = config.host_list.slurm       ? hosts_of_slurm(config, environ, plan.srun)
                     : config.host_list.node_file ? hosts_of_node_file(options, environ, config)
                                                  : hosts_of(config.host_list);
  OwnHost own = place.own;
  learn_names(own, list.hosts);
  if (!config.host_list.slurm) merge_own(list, own);
  plan.notes = std::move(list.notes);
  if (options.values.contains("master"))
    plan.notes.push_back("--master has no effect: the hosts of a list meet at the one that starts them");
  if (has_servers(list)) {
    if (config.mode != Mode::ps && options.values.contains("run_mode"))
      plan.notes.push_back("run_mode is ps, not " + std::string(to_string(config.mode)) +
                           ", because the list of hosts names servers");
    config.mode = Mode::ps;
    options.values["run_mode"] = "ps";
    for (RemoteHost& host : list.hosts) host.servers = host.servers.value_or(config.server_num.value_or(0));
  }
  plan.nodes = nodes_of(config, options, list.hosts.size());
  plan.elastic = config.rendezvous.elastic;
  plan.mode = config.mode;
  plan.raw = config.show.kind == Show::Kind::first;
  plan.ssh = split_command(config.host_list.ssh);
  plan.program = config.host_list.path.empty() ? place.program : config.host_list.path;
  remote_command(plan.program);  // refused here, before anything is done
  plan.window = config.host_list.window > 0 ? config.host_list.window : kWindow;
  plan.ships = config.host_list.ship.has_value();
  plan.log_dir = config.log_dir;
  plan.on_event = config.on_event;
  plan.collect_logs = config.host_list.collect_logs;
  for (const RemoteHost& host : list.hosts) {
    check_host(host, config);
    HostPart part;
    part.host = host;
    part.here = is_own(own, host.name);
    part.order = order_for(host, options, config, environ, place);
    part.order.node_rank = static_cast<int>(plan.hosts.size());
    part.order.nodes = plan.nodes;
    part.order.elastic = plan.elastic;
    count_processes(part, config);
    plan.hosts.push_back(std::move(part));
  }
  if (static_cast<int>(plan.hosts.size()) > plan.nodes.max) {
    for (HostPart& part : plan.hosts) part.order.node_rank = -1;  // some of them are spares
  }
  count_ranks(plan.hosts);
  check_roles(plan.hosts, config);
  check_shown(plan.hosts, config);
  if (plan.raw) choose_shown(plan.hosts);
  return plan;
}

namespace {

std::string processes_text(const HostPart& part, Mode mode) {
  const auto some = [](const char* role, const std::optional<int>& count, const std::optional<int>& first) {
    if (!count) return std::string(role) + "s: one per device there";
    if (*count == 0) return std::string("no ") + role;
    const std::string number = std::to_string(*count) + " " + role + (*count == 1 ? "" : "s");
    if (!first) return number;
    return number +
           (*count == 1 ? ", rank " + std::to_string(*first)
                        : ", ranks " + std::to_string(*first) + " to " + std::to_string(*first + *count - 1));
  };
  const std::string trainers = some("trainer", part.trainers, part.first_trainer);
  return mode == Mode::ps ? some("server", part.servers, part.first_server) + "; " + trainers : trainers;
}

std::string variables_text(const LaunchOrder& order) {
  std::vector<std::string> names;
  for (const auto& [name, value] : order.environment) names.push_back(name);
  return join(names, ",");
}

}  // namespace

std::string to_text(const ControllerPlan& plan) {
  const LaunchOrder& common = plan.hosts.front().order;
  const std::string command = remote_command(plan.program);
  std::string text = "Job on " + hosts_text(plan.hosts.size()) + ", mode " +
                     std::string(to_string(plan.mode)) +
                     ", logins at a time: " + std::to_string(plan.window) + "\n";
  text += "  program    " + shell_quoted(common.script.value_or(""));
  for (const std::string& argument : common.script_args)
    text += " " + shell_quoted(printable(argument, 4000));
  text += "\n  directory  " + common.cwd + "\n";
  if (!common.environment.empty()) text += "  variables  " + variables_text(common) + "\n";
  if (!plan.on_event.empty()) text += "  on event   " + printable(plan.on_event, 4000) + "\n";
  for (const HostPart& part : plan.hosts) {
    text += "host " + std::to_string(&part - plan.hosts.data()) + ": " + written(part.host) +
            (part.here ? ", this host" : "") + "\n";
    text +=
        "  started by " +
        (plan.ships && !part.here ? "fleetrun, which travels there over " + join(plan.ssh, " ")
         : !plan.srun.empty() ? join(plan.srun, " ") + " " + plan.program + " agent --task, with the others"
         : part.here          ? plan.program + " agent --stdin, directly"
                              : join(ssh_argv(plan.ssh, part.host, command, std::chrono::seconds(10)), " ")) +
        "\n";
    text += "  runs       " + processes_text(part, plan.mode) + "\n";
    if (part.order.devices) text += "  devices    " + join(*part.order.devices, ",") + "\n";
    text += "  logs       " + part.order.values.at("log_dir") + "\n";
  }
  return text;
}

}  // namespace fleetrun::launcher::remote
