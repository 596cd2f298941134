#include "runtime/trainer/epoch_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace fleetrun::runtime {

namespace {

constexpr std::array<std::string_view, kStages> kStageNames{"read", "pull", "compute", "push", "exchange"};

/// What to change when a stage takes the most.
constexpr std::array<std::string_view, kStages> kAdvice{
    "more reader threads (thread_num), a cheaper pipe_command, or load_into_memory make it faster",
    "larger batches, pulling dense parameters less often, or more servers make it faster",
    "more threads or trainers make it faster while cores are free",
    "larger batches, sending smaller gradients, or more servers make it faster",
    "larger batches, float16 transfers (fp16_allreduce) or equally fast trainers make it faster",
};

double seconds_between(EpochProfile::Clock::time_point from, EpochProfile::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

std::string_view to_string(Stage stage) noexcept {
  return kStageNames[static_cast<std::size_t>(stage)];
}

void EpochProfile::add(Stage stage, Clock::time_point from, Clock::time_point to) {
  stages_[static_cast<std::size_t>(stage)] += seconds_between(from, to);
  track_.add(to_string(stage), "stage", from, to);
}

void EpochProfile::ran(const engine::Operator& op, double seconds) {
  if (operators_wanted_) {
    OperatorTime& time = operators_[op.type];
    ++time.calls;
    time.seconds += seconds;
  }
  if (!track_.is_drawn()) return;
  const auto now = Clock::now();
  track_.add(op.type, "operator",
             now - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)), now);
}

std::string bound_of(const StageSeconds& stages) {
  const double total = std::accumulate(stages.begin(), stages.end(), 0.0);
  if (total <= 0) return {};
  const auto max = static_cast<std::size_t>(std::ranges::max_element(stages) - stages.begin());
  std::string text = "bound by " + std::string(kStageNames[max]) + ":";
  for (std::size_t i = 0; i < kStages; ++i) {
    if (stages[i] == 0) continue;
    text += text.ends_with(':') ? " " : ", ";
    text += std::string(kStageNames[i]) + " " + std::to_string(std::lround(100.0 * stages[i] / total)) + " %";
  }
  return text + " of the threads' time; " + std::string(kAdvice[max]);
}

std::string table_of(const OperatorTimes& operators) {
  std::vector<std::pair<std::string_view, OperatorTime>> sorted(operators.begin(), operators.end());
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  double total = 0;
  std::size_t widest = std::string_view("operator").size();
  for (const auto& [type, time] : sorted) {
    total += time.seconds;
    widest = std::max(widest, type.size());
  }
  std::string text = "operator" + std::string(widest - 8, ' ') + "       calls  milliseconds   share";
  for (const auto& [type, time] : sorted) {
    char figures[80];
    std::snprintf(figures, sizeof figures, "%12llu%14.3f%6.1f %%",
                  static_cast<unsigned long long>(time.calls), time.seconds * 1e3,
                  total > 0 ? 100.0 * time.seconds / total : 0.0);
    text += "\n" + std::string(type) + std::string(widest - type.size(), ' ') + figures;
  }
  return text;
}

}  // namespace fleetrun::runtime
