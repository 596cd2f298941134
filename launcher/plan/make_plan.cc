// What is the same in all modes: command, working directory, names of the logs, and the variables beside the
// identity's.
#include "launcher/plan/make_plan.h"

#include <algorithm>

#include "launcher/host/affinity.h"
#include "launcher/host/find_program.h"
#include "launcher/model/binding.h"
#include "launcher/model/host_facts.h"
#include "launcher/model/job_config.h"
#include "launcher/model/plan.h"
#include "launcher/model/program.h"
#include "launcher/plan/large_environment.h"
#include "launcher/plan/plan_ranks.h"
#include "launcher/plan/plan_roles.h"
#include "launcher/plan/plan_spares.h"
#include "launcher/plan/plan_torchrun.h"
#include "runtime/base/env_contract.h"

namespace fleetrun::launcher {
namespace {

std::string joined_path(const std::string& head, const std::string& tail) {
  if (head.empty()) return tail;
  return tail.empty() ? head : head + ":" + tail;
}

/// Whether processes of this job talk to each other over connections that they prove themselves for.
bool proves_itself(const JobConfig& config) {
  return config.mode == Mode::ps || config.mode == Mode::collective;
}

/// The variables that are not part of a process's identity: threads per process, module path, where `python`
/// is.
void add_surroundings(const Program& program, const HostFacts& facts, int threads, Environ& environ) {
  if (!facts.has_omp_num_threads) environ.set("OMP_NUM_THREADS", std::to_string(threads));
  // The number of replicas of a Paddle program, which changes what it computes:
  // never more than was asked for.
  if (!facts.has_cpu_num) environ.set("CPU_NUM", "1");
  if (!program.interpreter.empty()) {
    const std::string path = joined_path(directory_of(program.interpreter), facts.base_path);
    environ.set("PATH", joined_path(facts.python_directory, path));
  }
  if (!facts.compat_directory.empty()) {
    environ.set("PYTHONPATH", joined_path(facts.compat_directory, facts.base_python_path));
    environ.set("FLEETRUN_COMPAT", "paddle");
  }
}

/// What the user wants of every process.
void add_user_choices(const JobConfig& config, Environ& environ) {
  if (config.bad_line) environ.set("FLEETRUN_BAD_LINE", *config.bad_line);
  if (config.sentinel) environ.set("FLEETRUN_SENTINEL", *config.sentinel);
  if (config.trace) environ.set("FLEETRUN_TRACE", *config.trace);
  if (config.rendezvous.insecure && proves_itself(config)) environ.set("FLEETRUN_INSECURE", "1");
}

void add_descriptors(const JobConfig& config, const RolePlan& role, ProcessSpec& process) {
  // One digit where it can be, because some shells know no others in >&N, and one that scripts seldom use.
  int next = 0;
  const auto add = [&](std::string_view variable, int requested) {
    const int number = std::max(next, requested);
    next = number + 1;
    process.descriptors.push_back({std::string(variable), number});
    process.environment.set(std::string(variable), std::to_string(number));
  };
  if (role.ready.kind == Readiness::Kind::descriptor) add(kReadyVariable, 9);
  if (config.rendezvous.kind != Rendezvous::Kind::none) add(kWorldVariable, 9);
  if (config.replaces_failed && process.identity.mode == Mode::collective) add(kMemberVariable, 9);
  if (watches_steps(config)) add(kHeartbeatVariable, 8);
}

void bind(const JobConfig& config, const HostFacts& facts, Plan& plan) {
  if (!facts.topology) return;
  std::vector<std::vector<std::string>> pci;
  for (const ProcessSpec& process : plan.processes) pci.push_back(process.device_places);
  Bindings bindings = bind_processes(config.bind, *facts.topology, pci);
  for (std::size_t i = 0; i < plan.processes.size(); ++i) {
    plan.processes[i].cpus = std::move(bindings.processes[i].cpus);
    plan.processes[i].memory_nodes = std::move(bindings.processes[i].memory_nodes);
  }
  plan.notes.insert(plan.notes.end(), bindings.notes.begin(), bindings.notes.end());
}

std::string log_name(const Identity& identity) {
  if (identity.mode == Mode::own) return identity.own_name + "log." + std::to_string(identity.local_rank);
  return (identity.role == Role::server ? "serverlog." : "workerlog.") + std::to_string(identity.local_rank);
}

/// The names of the Fleet documentation: JOB.POD.ps.N.log and JOB.POD.trainer.N.log.
std::string log_alias(const Identity& identity) {
  const std::string role = identity.mode == Mode::own      ? identity.own_name
                           : identity.role == Role::server ? "ps"
                                                           : "trainer";
  return identity.job_id + "." + identity.pod_name + "." + role + "." + std::to_string(identity.local_rank) +
         ".log";
}

/// The program of each role of the plan.
std::vector<const Program*> programs_by_role(const JobConfig& config, const std::vector<Program>& programs,
                                             const Plan& plan) {
  std::vector<const Program*> by_role(plan.roles.size(), &programs.front());
  for (std::size_t r = 0; config.file && r < plan.roles.size(); ++r) {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      if (config.file->roles[i].name == plan.roles[r].name) by_role[r] = &programs[i];
    }
  }
  return by_role;
}

}  // namespace

Plan make_plan(const JobConfig& config, const Program& program, const HostFacts& facts,
               const std::optional<WorldPlace>& place) {
  return make_plan(config, std::vector<Program>{program}, facts, place);
}

Plan make_plan(const JobConfig& config, const std::vector<Program>& programs, const HostFacts& facts,
               const std::optional<WorldPlace>& place) {
  Plan plan;
  plan.mode = config.mode;
  plan.job_id = config.job_id;
  plan.pod_name = facts.pod_name;
  plan.log_dir_shown = config.log_dir;
  plan.log_dir =
      config.log_dir.starts_with('/') ? config.log_dir : facts.working_directory + "/" + config.log_dir;
  plan.log_overwrite = config.log_overwrite;
  plan.has_secret = proves_itself(config) && !config.rendezvous.insecure;
  plan.ready_timeout = config.ready_timeout;
  plan.timeout = config.timeout;
  plan.on_event = config.on_event;
  plan.restart = restart_rules(config);
  const PlanRanks ranks = plan_ranks(config, facts, place);
  if (config.file)
    plan_roles(config, facts, ranks, plan);
  else if (config.mode == Mode::ps)
    plan_ps(config, facts, ranks, plan);
  else if (config.mode == Mode::rpc)
    plan_rpc(config, facts, ranks, plan);
  else
    plan_collective(config, facts, ranks, plan);

  plan.notes.insert(plan.notes.end(), facts.notes.begin(), facts.notes.end());
  bind(config, facts, plan);
  const int threads = threads_per_process(facts.cpus.cores, plan.processes.size());
  const std::size_t first_spare = plan.processes.size();  // they do nothing while they stand by
  plan_spares(config, plan);
  const auto by_role = programs_by_role(config, programs, plan);
  Environ moved;
  for (ProcessSpec& process : plan.processes) {
    const Program& program = *by_role[process.role];
    if (process.identity.mode != Mode::own) process.identity.mode = plan.mode;
    process.identity.job_id = plan.job_id;
    process.identity.pod_name = plan.pod_name;
    process.identity.log_dir = plan.log_dir;
    process.name = process_name(process.identity);
    process.program = program.path;
    process.argv = program.argv;
    process.cwd = process.cwd.empty()            ? facts.working_directory
                  : process.cwd.starts_with('/') ? process.cwd
                                                 : facts.working_directory + "/" + process.cwd;
    process.log_name = log_name(process.identity);
    process.log_alias = log_alias(process.identity);
    const Environ of_mode = std::move(process.environment);
    process.environment = to_environ(process.identity);
    process.unset = foreign_variables(process.identity, facts.is_in_job);
    add_surroundings(program, facts, threads, process.environment);
    for (const auto& [name, value] : of_mode.values()) process.environment.set(name, value);
    add_user_choices(config, process.environment);
    add_descriptors(config, plan.roles[process.role], process);
    std::erase_if(process.unset, [&](const std::string& name) { return process.environment.has(name); });
    move_large_lists(plan, process, config.longest_list, moved);
  }
  for (std::size_t i = first_spare; i < plan.processes.size(); ++i)
    name_spare(i - first_spare, plan.processes[i]);
  if (config.torchrun) follow_torchrun(config, facts, plan);
  move_large_lists(plan, config.longest_list, std::move(moved));
  return plan;
}

}  // namespace fleetrun::launcher
