#include "runtime/pass_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>

#include "runtime/base/error.h"

namespace fleetrun::runtime {

namespace {

constexpr std::array<std::string_view, kStages> kStageNames{"read", "pull", "compute", "push"};

/// What to change when a stage takes the most.
constexpr std::array<std::string_view, kStages> kAdvice{
    "more reader threads (thread_num), a cheaper pipe_command, or load_into_memory make it faster",
    "larger batches, pulling dense parameters less often, or more servers make it faster",
    "more threads or trainers make it faster while cores are free",
    "larger batches, sending smaller gradients, or more servers make it faster",
};

double seconds_between(PassProfile::Clock::time_point from, PassProfile::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

std::string_view to_string(Stage stage) noexcept {
  return kStageNames[static_cast<std::size_t>(stage)];
}

void PassProfile::ended(Stage stage, Clock::time_point from) {
  const auto now = Clock::now();
  stages_[static_cast<std::size_t>(stage)] += seconds_between(from, now);
  if (options_.trace) add_event(to_string(stage), "stage", from, now);
}

void PassProfile::ran(const engine::Operator& op, double seconds) {
  if (options_.operators) {
    OperatorTime& time = operators_[op.type];
    ++time.calls;
    time.seconds += seconds;
  }
  if (!options_.trace) return;
  const auto now = Clock::now();
  add_event(op.type, "operator",
            now - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)), now);
}

void PassProfile::add_event(std::string_view name, std::string_view category, Clock::time_point from,
                            Clock::time_point to) {
  if (events_.size() >= kMostEvents) return;
  const auto microseconds = [](Clock::duration duration) {
    return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  };
  events_.push_back({std::string(name), category, microseconds(from - start_), microseconds(to - from)});
}

std::string bound_of(const StageSeconds& stages) {
  const double total = std::accumulate(stages.begin(), stages.end(), 0.0);
  if (total <= 0) return {};
  const auto most = static_cast<std::size_t>(std::ranges::max_element(stages) - stages.begin());
  std::string text = "bound by " + std::string(kStageNames[most]) + ":";
  for (std::size_t i = 0; i < kStages; ++i) {
    text += i == 0 ? " " : ", ";
    text += std::string(kStageNames[i]) + " " + std::to_string(std::lround(100.0 * stages[i] / total)) + " %";
  }
  return text + " of the threads' time; " + std::string(kAdvice[most]);
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

void write_trace(const std::string& path, std::int64_t process,
                 const std::vector<std::vector<TraceEvent>>& threads) {
  std::ofstream file(path);
  file << R"({"displayTimeUnit": "ms", "traceEvents": [)" << '\n'
       << R"({"name": "process_name", "ph": "M", "pid": )" << process << R"(, "args": {"name": "trainer )"
       << process << R"("}})";
  for (std::size_t thread = 0; thread < threads.size(); ++thread) {
    for (const TraceEvent& event : threads[thread]) {
      file << ",\n"
           << R"({"name": ")" << event.name << R"(", "cat": ")" << event.category << R"(", "ph": "X", "ts": )"
           << event.start << R"(, "dur": )" << event.duration << R"(, "pid": )" << process << R"(, "tid": )"
           << thread << "}";
    }
  }
  file << "\n]}\n";
  file.close();
  if (file.fail()) {
    throw Error(ErrorKind::host, "the timeline could not be written to " + path,
                "name a folder that is there, with space left");
  }
}

}  // namespace fleetrun::runtime
