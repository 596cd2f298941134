#include "launcher/model/restart_policy.h"

#include <algorithm>

namespace fleetrun::launcher {

using std::chrono::milliseconds;

std::string_view to_string(RestartScope scope) noexcept {
  constexpr std::string_view kNames[] = {"nobody", "process", "group"};
  return kNames[static_cast<int>(scope)];
}

bool RestartRules::any() const noexcept {
  return std::any_of(budgets.begin(), budgets.end(), [](int budget) { return budget != 0; });
}

RestartPolicy::RestartPolicy(RestartRules rules, std::uint64_t seed)
    : rules_(rules), random_(static_cast<std::minstd_rand::result_type>(seed)) {}

RestartDecision RestartPolicy::on_failure(const FailureRecord& failure, RestartScope scope) {
  if (!rules_.any()) return GiveUp{};
  if (failure.kind == FailureKind::not_started)
    return GiveUp{"what could not be started once cannot be started again"};
  if (scope == RestartScope::nobody) return GiveUp{failure.who + " is of a role that is not restarted"};
  if (failure.ran >= rules_.healthy_after) {
    used_ = {};
    in_a_row_ = 0;
    same_count_ = 0;
  }
  if (same_again(failure))
    return GiveUp{"the same failure " + std::to_string(same_count_) + " times in a row, and no progress"};
  const auto kind = static_cast<std::size_t>(failure.kind);
  const int budget = rules_.budgets[kind];
  const std::string name(to_string(failure.kind));
  if (budget >= 0 && used_[kind] >= budget)
    return GiveUp{"all " + std::to_string(budget) + " restarts after " + name + " are used up"};
  if (rules_.total >= 0 && used_in_all_ >= rules_.total)
    return GiveUp{"all " + std::to_string(rules_.total) + " restarts are used up"};
  ++used_in_all_;
  ++used_[kind];
  return Restart{next_backoff(), name + ", restart " + std::to_string(used_[kind]) +
                                     (budget >= 0 ? " of " + std::to_string(budget) : "")};
}

/// Preemption says nothing about the program, so it never counts as the same crash.
bool RestartPolicy::same_again(const FailureRecord& failure) {
  const bool progressed = failure.progress && (!last_progress_ || *failure.progress > *last_progress_);
  const bool same = failure.who == last_who_ && failure.signature == last_signature_ && !progressed &&
                    failure.kind != FailureKind::preemption;
  same_count_ = same ? same_count_ + 1 : 1;
  last_who_ = failure.who;
  last_signature_ = failure.signature;
  if (progressed) last_progress_ = failure.progress;
  // Who never says how far it is may have come further each time.
  return rules_.same_failures > 0 && last_progress_ && same_count_ >= rules_.same_failures &&
         failure.kind != FailureKind::preemption;
}

milliseconds RestartPolicy::next_backoff() {
  const int doublings = in_a_row_++ - 1;
  if (doublings < 0 || rules_.backoff == milliseconds{}) return milliseconds{};
  const milliseconds max = doublings > 20
                               ? rules_.longest_backoff
                               : std::min(rules_.longest_backoff, rules_.backoff * (1 << doublings));
  return milliseconds(std::uniform_int_distribution<std::int64_t>(0, max.count())(random_));
}

}  // namespace fleetrun::launcher
