// Parameter-server mode: servers, then trainers. Where the user wrote both lists, nobody is told the number
// of hosts (Paddle's form A). Server 0 serves Gloo's store at the rendezvous endpoint, so that port is held
// for it.
#include <filesystem>
#include <set>
#include <string>

#include "launcher/plan/make_plan.h"
#include "launcher/plan/plan_ranks.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kServers = 0, kTrainers = 1;  // in Plan::roles

ProcessSpec make_process(Role role, int local_rank, const PlanRanks& ranks, const JobConfig& config,
                         const HostFacts& facts, const Plan& plan) {
  ProcessSpec process;
  process.role = role == Role::server ? kServers : kTrainers;
  Identity& identity = process.identity;
  identity.role = role;
  identity.rank = (role == Role::server ? ranks.first_server : ranks.first_trainer) + local_rank;
  identity.local_rank = local_rank;
  identity.servers = ranks.servers;
  identity.trainers = ranks.trainers;
  identity.hosts = ranks.hosts;
  identity.world = ranks.world;
  if (!config.servers.empty() && !config.trainers.empty()) identity.hosts.reset();
  identity.gloo.with_gloo = config.with_gloo;
  identity.gloo.http = ranks.rendezvous;
  identity.gloo.path = plan.log_dir + "/.gloo-" + plan.pod_name;
  if (role == Role::server && facts.own_servers) {
    process.own_ports = {self_endpoint(identity)};
    process.environment.set("FLEETRUN_LISTEN", to_string(process.own_ports));
  } else {
    process.ports = {self_endpoint(identity)};
  }
  if (role == Role::server && identity.rank == 0) process.ports.push_back(facts.rendezvous);
  return process;
}

// A server's standby is another server, from which it is started again alone. Before the hosts of a job have
// met nobody knows how many there are.
void check_standbys(const JobConfig& config, const PlanRanks& ranks, bool are_kept, Plan& plan) {
  if (!are_kept)
    throw Error(ErrorKind::config, "--ps_replicas=1 for servers that are not started again alone",
                "leave --restart=server=… out");
  if (!ranks.world && config.rendezvous.kind != Rendezvous::Kind::none) return;
  if (const std::size_t servers = ranks.servers.size(); servers < 2)
    throw Error(ErrorKind::config,
                "--ps_replicas=1 with " + std::to_string(servers) + " server: its standby is another server",
                "start two or more: --server_num=2");
  std::set<std::string> hosts;
  for (const Endpoint& server : ranks.servers) hosts.insert(server.host);
  plan.notes.push_back(
      hosts.size() == 1 ? "--ps_replicas=1: all servers are on one host, and their standbys are lost with it"
                        : "--ps_replicas=1: a server that dies is started again on its own host; when a "
                          "host with servers is lost, the job is over or starts anew as a whole");
}

// Servers that are started again alone go on with what they have kept, and trainers wait for them.
void keep_servers(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks,
                  const RolePlan& servers, Plan& plan) {
  const bool are_kept = servers.restart == RestartScope::process && config.max_restart;
  if (config.ps_replicas > 0) check_standbys(config, ranks, are_kept, plan);
  if (!are_kept) return;
  namespace fs = std::filesystem;
  const std::string directory = config.ps_checkpoint
                                    ? (fs::path(facts.working_directory) / *config.ps_checkpoint).string()
                                    : plan.log_dir + "/.ps-" + plan.pod_name;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(config.ps_checkpoint_interval);
  for (ProcessSpec& process : plan.processes) {
    process.environment.set("FLEETRUN_PS_CHECKPOINT", directory);
    // Below the logs nobody keeps anything for later.
    process.environment.set("FLEETRUN_PS_CHECKPOINT_FOUND",
                            config.ps_checkpoint ? config.ps_checkpoint_found : "replace");
    process.environment.set("FLEETRUN_PS_CHECKPOINT_INTERVAL", std::to_string(seconds.count()));
    process.environment.set("FLEETRUN_PS_LOG_SYNC", config.ps_log_sync);
    if (config.ps_replicas > 0 && process.role == kServers)
      process.environment.set("FLEETRUN_PS_REPLICAS", "1");
  }
}

}  // namespace

void plan_ps(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks, Plan& plan) {
  RolePlan& servers = plan.roles.emplace_back();
  servers.name = "server";
  servers.serves = true;
  servers.restart = RestartScope::process;
  servers.ready.kind = Readiness::Kind::port;
  RolePlan& trainers = plan.roles.emplace_back();
  trainers.name = "trainer";
  trainers.restart = RestartScope::process;  // the servers keep the model, and its place in the data
  trainers.after = {kServers};
  for (RolePlan& role : plan.roles) {
    role.restart = restart_scope(config, role.name, role.restart);
    role.grace = config.grace.of(role.name);
  }
  for (const Role role : {Role::server, Role::trainer}) {
    const auto count = static_cast<int>((role == Role::server ? facts.servers : facts.trainers).size());
    for (int local_rank = 0; local_rank < count; ++local_rank)
      plan.processes.push_back(make_process(role, local_rank, ranks, config, facts, plan));
  }
  for (ProcessSpec& process : plan.processes) {
    if (process.identity.role != Role::server) continue;
    if (!config.ps_upload_cmd.empty())
      process.environment.set("FLEETRUN_PS_UPLOAD_CMD", config.ps_upload_cmd);
    if (!config.ps_download_cmd.empty())
      process.environment.set("FLEETRUN_PS_DOWNLOAD_CMD", config.ps_download_cmd);
  }
  keep_servers(config, facts, ranks, plan.roles[kServers], plan);
}

}  // namespace fleetrun::launcher
