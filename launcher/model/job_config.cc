#include "launcher/model/job_config.h"

#include <algorithm>

namespace fleetrun::launcher {

std::string_view to_string(LogLevel level) noexcept {
  constexpr std::string_view kNames[] = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};
  return kNames[static_cast<int>(level)];
}

std::string_view to_string(Containment level) noexcept {
  constexpr std::string_view kNames[] = {"auto", "subreaper", "cgroup2", "pidns"};
  return kNames[static_cast<int>(level)];
}

RestartScope restart_scope(const JobConfig& config, std::string_view role, RestartScope standard) {
  const auto chosen = config.restart.find(role);
  return chosen == config.restart.end() ? standard : chosen->second;
}

RestartRules restart_rules(const JobConfig& config) {
  RestartRules rules;
  rules.backoff = config.restart_backoff;
  rules.longest_backoff = std::max(rules.longest_backoff, rules.backoff);
  rules.healthy_after = config.healthy_after;
  rules.same_failures = config.same_failure_limit;
  if (!config.max_restart) return rules;
  const auto set = [&](FailureKind kind, std::optional<int> budget) {
    rules.budgets[static_cast<std::size_t>(kind)] = budget.value_or(*config.max_restart);
  };
  if (config.torchrun) rules.total = *config.max_restart;
  set(FailureKind::crash, config.restart_budget.crash);
  set(FailureKind::out_of_memory, config.restart_budget.oom);
  set(FailureKind::preemption, config.restart_budget.preemption);
  set(FailureKind::hang, config.restart_budget.hang);
  return rules;
}

bool watches_steps(const JobConfig& config) {
  return config.hang.timeout.count() > 0 || restart_rules(config).any() || needs_heartbeats(config.inject) ||
         config.metrics;
}

}  // namespace fleetrun::launcher
