// Explains failures for the supervisor: it listens to the job's events, and when an attempt has failed says
// which process failed first and why. It reads logs and the machine only then. One thread.
#pragma once

#include <cstddef>
#include <vector>

#include "launcher/failure/cause.h"
#include "launcher/failure/evidence.h"
#include "launcher/job/job_history.h"
#include "launcher/logs/log_files.h"
#include "launcher/model/failure_cause.h"
#include "launcher/model/plan.h"

namespace fleetrun::launcher {

struct Explanation {
  std::size_t index = 0;  // the process that failed first
  Cause cause;
  bool port_clash = false;  // one of its ports was taken by somebody else
};

class Explainer final : public JobObserver {
 public:
  explicit Explainer(MachineRoots roots = {}) : collector_(std::move(roots)) {}

  /// Notes the counters of memory: before the first process starts. Some 50 µs.
  void begin() { collector_.begin(); }

  void on_event(const JobEvent& event) override;

  void on_record(const JobRecord& record) { history_.on_record(record); }

  /// Notes where the processes that live have their memory accounted for, since they may move. For a timer;
  /// some 10 µs for each.
  void look();

  /// Why the attempt failed. `index` failed first by what the supervisor saw; `alone`: only that one is asked
  /// about.
  Explanation explain(std::size_t index, bool alone, const Plan& plan, const std::vector<LogFile>& logs);

  /// Does the end of `log` say that its process only follows another one's failure? Cheap: 8 KiB are read.
  static bool only_follows(const LogFile& log);

  const JobHistory& history() const noexcept { return history_; }

 private:
  void note(const event::ProcessExited& event);
  Cause cause_of(const Ending& ending, const Plan& plan, const LogFile& log);

  EvidenceCollector collector_;
  JobHistory history_;
};

}  // namespace fleetrun::launcher
