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
    if (config.most_servers)
      process.own_ports = {ranks.servers.begin(), ranks.servers.end()};
    else
      process.own_ports = {self_endpoint(identity)};
    std::vector<Endpoint> standbys;
    for (auto i = static_cast<std::size_t>(local_rank); i < facts.standbys.size(); i += facts.servers.size())
      standbys.push_back(facts.standbys[i]);
    process.own_ports.insert(process.own_ports.end(), standbys.begin(), standbys.end());
    if (!standbys.empty()) process.environment.set("FLEETRUN_PS_STANDBY", to_string(EndpointList(standbys)));
    process.environment.set("FLEETRUN_LISTEN", to_string(process.own_ports));
  } else {
    process.ports = {self_endpoint(identity)};
  }
  if (role == Role::server && identity.rank == 0) process.ports.push_back(facts.rendezvous);
  return process;
}

// A server's standby is another server, from which it is started again alone. Before the hosts of a job have
// met nobody knows how many there are. Returns whether servers have one: of hosts that come and go one server
// may be left, which goes on without.
bool check_standbys(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks, bool are_kept,
                    Plan& plan) {
  if (!are_kept)
    throw Error(ErrorKind::config, "--ps_replicas=1 for servers that are not started again alone",
                "leave --restart=server=… out");
  if (!ranks.world && config.rendezvous.kind != Rendezvous::Kind::none) return true;
  if (const std::size_t servers = ranks.servers.size(); servers < 2) {
    if (ranks.world && config.rendezvous.elastic && servers == 1) {
      plan.notes.push_back("--ps_replicas=1: the only server that is left has no standby");
      return false;
    }
    throw Error(ErrorKind::config,
                "--ps_replicas=1 with " + std::to_string(servers) + " server: its standby is another server",
                "start two or more: --server_num=2");
  }
  std::set<std::string> hosts;
  for (const Endpoint& server : ranks.servers) hosts.insert(server.host);
  if (config.most_servers && config.server_num == 1)
    plan.notes.push_back(
        "--ps_replicas=1: one process serves all servers, and their standbys are lost with it until "
        "fleetrun ps resize has more");
  else if (hosts.size() == 1)
    plan.notes.push_back("--ps_replicas=1: all servers are on one host, and their standbys are lost with it");
  else if (!config.rendezvous.elastic)
    plan.notes.push_back(
        "--ps_replicas=1: when a host with servers is lost, the job is over or starts anew as a whole; with "
        "--nnodes=MIN:MAX their standbys serve for them, and the other hosts go on");
  else if (!facts.own_servers)
    plan.notes.push_back(
        "--ps_replicas=1: when a host with servers is lost, the job starts anew as a whole: only scripts "
        "that import fleetrun go on with the standbys");
  return true;
}

// Servers that move between processes go on from what they keep: on this host, and by fleetrun's own program.
void check_moving(const HostFacts& facts, bool are_kept) {
  const char* kFixed = "start a fixed number of servers: --server_num=N";
  if (!are_kept)
    throw Error(ErrorKind::config, "servers that move between processes, and are not started again alone",
                "leave --restart=server=… out");
  if (!facts.own_servers)
    throw Error(ErrorKind::config,
                "servers that move between processes, and a script that does not import fleetrun", kFixed);
}

// Servers that are started again alone go on with what they have kept, and trainers wait for them.
void keep_servers(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks,
                  const RolePlan& servers, Plan& plan) {
  const bool are_kept = servers.restart == RestartScope::process && config.max_restart;
  const bool have_standbys = config.ps_replicas > 0 && check_standbys(config, facts, ranks, are_kept, plan);
  if (config.most_servers) check_moving(facts, are_kept);
  if (!are_kept) return;
  namespace fs = std::filesystem;
  const std::string own = plan.log_dir + "/.ps-" + plan.pod_name;
  const std::string directory =
      config.ps_checkpoint ? (fs::path(facts.working_directory) / *config.ps_checkpoint).string() : own;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(config.ps_checkpoint_interval);
  for (ProcessSpec& process : plan.processes) {
    process.environment.set("FLEETRUN_PS_CHECKPOINT", directory);
    // Below the logs nobody keeps anything for later.
    process.environment.set("FLEETRUN_PS_CHECKPOINT_FOUND",
                            config.ps_checkpoint ? config.ps_checkpoint_found : "replace");
    process.environment.set("FLEETRUN_PS_CHECKPOINT_INTERVAL", std::to_string(seconds.count()));
    process.environment.set("FLEETRUN_PS_LOG_SYNC", config.ps_log_sync);
    if (have_standbys) process.environment.set("FLEETRUN_PS_REPLICAS", "1");
    if (config.most_servers && process.role == kServers)
      process.environment.set("FLEETRUN_PS_PROCESSES", own + "/processes");
  }
}

}  // namespace

void plan_ps(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks, Plan& plan) {
  if (ranks.world && ranks.servers.empty())
    throw Error(ErrorKind::config, "no host of the job has a server",
                "--server_num=1 on one of them starts one; without servers each trainer would train alone");
  RolePlan& servers = plan.roles.emplace_back();
  servers.name = "server";
  servers.serves = true;
  servers.restart = RestartScope::process;
  servers.ready.kind = Readiness::Kind::port;
  if (config.most_servers) servers.wanted = static_cast<std::size_t>(*config.server_num);
  RolePlan& trainers = plan.roles.emplace_back();
  trainers.name = "trainer";
  trainers.restart = RestartScope::process;  // the servers keep the model, and its place in the data
  trainers.after = {kServers};
  for (RolePlan& role : plan.roles) {
    role.restart = restart_scope(config, role.name, role.restart);
    role.grace = config.grace.of(role.name);
  }
  for (const Role role : {Role::server, Role::trainer}) {
    const std::size_t servers = ranks.own_servers.value_or(facts.servers.size());
    const auto count = static_cast<int>(role == Role::server ? servers : facts.trainers.size());
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
  if (ranks.own_servers && *ranks.own_servers < facts.servers.size())
    plan.notes.push_back("no server is started here: the job goes on with the servers that it has");
  keep_servers(config, facts, ranks, plan.roles[kServers], plan);
}

}  // namespace fleetrun::launcher
