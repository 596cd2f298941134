#include "launcher/plan/attempt_overlay.h"

#include <algorithm>

#include "launcher/host/run_directory.h"

namespace fleetrun::launcher {
namespace {

/// Of the world, which the hosts of a job make when they meet.
constexpr const char* kOfWorld[] = {"FLEETRUN_EPOCH", "FLEETRUN_NODE_RANK", "FLEETRUN_NODES", "FLEETRUN_RUN",
                                    "FLEETRUN_WORLD_HASH"};

std::string run_of_group(const RunValues& run, int group) {
  return run.run + "-" + std::to_string(group);
}

bool writes_metrics(const Identity& identity) {
  return identity.mode == Mode::ps && identity.role == Role::server;
}

}  // namespace

Environ attempt_overlay(const Plan& plan, const ProcessSpec& process, const std::optional<RunValues>& run,
                        const Attempt& attempt) {
  const std::string unknown(kKnownAtStart);
  Environ overlay;
  overlay.set("FLEETRUN_ATTEMPT", std::to_string(attempt.number));
  if (plan.mode == Mode::collective)
    overlay.set("TORCHELASTIC_RESTART_COUNT", std::to_string(attempt.number));
  if (process.output)
    overlay.set("TORCHELASTIC_ERROR_FILE",
                process.output->directory.empty()
                    ? std::string()
                    : process.output->place(attempt.number, process.identity.local_rank) + "/error.json");
  // A server that is started again alone goes on with what it has kept,
  // but not with what an earlier group has.
  if (plan.mode == Mode::ps)
    overlay.set("FLEETRUN_PS_RUN", run ? run_of_group(*run, attempt.group_number) : unknown);
  if (plan.mode == Mode::ps && process.identity.role == Role::server && run && attempt.served_in)
    overlay.set("FLEETRUN_PS_SERVED", run_of_group(*run, *attempt.served_in));
  if (plan.has_secret && !(run && run->secret_file.empty()))
    overlay.set("FLEETRUN_SECRET_FILE", run ? run->secret_file : unknown);
  if (writes_metrics(process.identity) && !(run && run->metrics_directory.empty()))
    overlay.set("FLEETRUN_SERVER_FIGURES",
                run ? run->metrics_directory + "/" + metrics_file_name(plan.pod_name, process.identity.rank)
                    : unknown);
  if (process.identity.role == Role::trainer)
    overlay.set("FLEETRUN_FAILED_BATCH", plan.log_dir + "/" + plan.pod_name + "/batch.trainer." +
                                             std::to_string(process.identity.rank));
  if (!run && !process.identity.world && process.environment.has(kWorldVariable)) {
    for (const char* name : kOfWorld) overlay.set(name, unknown);
  }
  return overlay;
}

Plan as_first_started(Plan plan) {
  for (ProcessSpec& process : plan.processes) {
    const Environ overlay = attempt_overlay(plan, process, std::nullopt, {});
    for (const auto& [name, value] : overlay.values()) process.environment.set(name, value);
  }
  return plan;
}

bool is_given_by_anybody(const ProcessSpec& process, const std::string& name) {
  return process.environment.value_or(name, "") != kKnownAtStart &&
         std::none_of(process.descriptors.begin(), process.descriptors.end(),
                      [&](const NamedDescriptor& descriptor) { return descriptor.variable == name; });
}

}  // namespace fleetrun::launcher
