#include "launcher/logs/log_choice.h"

#include <unistd.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

std::string role_of(const Plan& plan, const ProcessSpec& process) {
  return process.role < plan.roles.size() ? plan.roles[process.role].name : "trainer";
}

std::string main_role(const Plan& plan) {
  for (const RolePlan& role : plan.roles) {
    if (!role.serves) return role.name;
  }
  return plan.roles.empty() ? "trainer" : plan.roles.front().name;
}

/// Whether other hosts have processes of the job too: who is not here may be there.
bool is_among_others(const Plan& plan) {
  return std::any_of(plan.processes.begin(), plan.processes.end(),
                     [](const ProcessSpec& process) { return process.identity.world.has_value(); });
}

/// Shows the process `rank` of `role`, or all of them where that is -1.
void show_some(const Plan& plan, const std::string& role, int rank, std::vector<ViewedProcess>& viewed) {
  const bool elsewhere = is_among_others(plan);
  std::size_t size = 0, found = 0;
  for (std::size_t i = 0; i < plan.processes.size(); ++i) {
    if (role_of(plan, plan.processes[i]) != role) continue;
    ++size;
    if (elsewhere) size = static_cast<std::size_t>(role_size(plan.processes[i].identity));
    if (rank >= 0 && plan.processes[i].identity.rank != rank) continue;
    ++found;
    viewed[i].showing = Showing::always;
  }
  if (elsewhere && (size == 0 || rank < static_cast<int>(size))) return;
  if (size == 0)
    throw Error(ErrorKind::config, "--show names " + printable(role) + ", and the job has no such role");
  if (found == 0)
    throw Error(ErrorKind::config,
                "--show names " + role + " " + std::to_string(rank) + ", and there are " +
                    std::to_string(size) + " of them",
                "ranks begin at 0");
}

}  // namespace

std::vector<ViewedProcess> viewed_processes(const Plan& plan, const Show& show) {
  Showing all = Showing::never;
  if (show.kind == Show::Kind::all) all = Showing::always;
  if (show.kind == Show::Kind::failed) all = Showing::after_failure;
  std::vector<ViewedProcess> viewed;
  for (const ProcessSpec& process : plan.processes) viewed.push_back({process.name, all});
  for (const std::string& role : show.roles) show_some(plan, role, -1, viewed);
  for (const int rank : show.trainers) show_some(plan, main_role(plan), rank, viewed);
  const std::string role = main_role(plan);
  for (std::size_t i = 0; i < viewed.size() && show.kind == Show::Kind::first; ++i) {
    if (role_of(plan, plan.processes[i]) != role) continue;
    viewed[i].showing = Showing::always;
    break;
  }
  return viewed;
}

bool is_raw(const Show& show) noexcept {
  return show.kind == Show::Kind::first;
}

std::vector<JobViewPart> views_of(const Plan& plan, const JobConfig& config, bool colour) {
  if (!config.torchrun)
    return {{LogSide::whole,
             {.raw = is_raw(config.show), .colour = colour},
             viewed_processes(plan, config.show)}};
  JobViewPart out = {LogSide::out, {.output = STDOUT_FILENO, .bare = true}, {}};
  JobViewPart err = {LogSide::err, {.output = STDERR_FILENO, .bare = true}, {}};
  for (const ProcessSpec& process : plan.processes) {
    const OutputPlan output = process.output.value_or(OutputPlan());
    out.viewed.push_back({output.prefix, output.shown.out ? Showing::always : Showing::never});
    err.viewed.push_back({output.prefix, output.shown.err ? Showing::always : Showing::never});
  }
  return {std::move(out), std::move(err)};
}

bool use_colour(Color spec, bool terminal, const Environ& environ) {
  if (spec != Color::automatic) return spec == Color::always;
  return terminal && environ.value_or("NO_COLOR", "").empty() && environ.value_or("TERM", "") != "dumb";
}

}  // namespace fleetrun::launcher
