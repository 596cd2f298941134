#include "launcher/session/job_notices.h"

#include <optional>
#include <utility>

namespace fleetrun::launcher {
namespace {

class Notices final : public JobPart {
 public:
  Notices(JobControl& control, bool several_hosts, std::function<void(JobNotice)> tell)
      : control_(control), several_hosts_(several_hosts), tell_(std::move(tell)) {}

  void on_event(const JobEvent& event) override {
    std::visit([this](const auto& happened) { on(happened); }, event);
  }

 private:
  std::string name_of(std::size_t index) const { return control_.plan().processes.at(index).name; }

  void on(const event::AllRunning&) {
    if (!several_hosts_ && !std::exchange(began_, true)) tell_({.kind = JobNotice::Kind::start});
  }

  void on(const event::FailureExplained& explained) {
    failure_ = JobNotice{.kind = JobNotice::Kind::failure,
                         .process = name_of(explained.index),
                         .cause = std::string(to_string(explained.cause.kind)),
                         .why = explained.cause.text,
                         .attempt = explained.attempt};
    if (!several_hosts_) tell_failure();
  }

  void tell_failure() {
    if (failure_) tell_(*std::exchange(failure_, std::nullopt));
  }

  void on(const event::RestartDecided& decided) {
    if (several_hosts_ && decided.scope != RestartScope::process) return;
    tell_failure();
    tell_({.kind = JobNotice::Kind::restart,
           .process = name_of(decided.index),
           .why = decided.why,
           .attempt = decided.next_attempt,
           .backoff_ms = decided.backoff.count()});
  }

  /// A rank that goes on in another process is no restart that anybody decided.
  void on(const event::GenerationBegan& began) {
    for (const auto& replaced : began.replaced)
      tell_({.kind = JobNotice::Kind::restart,
             .process = name_of(replaced.lost),
             .why = name_of(replaced.by) + " takes its place as rank " + std::to_string(replaced.rank)});
  }

  template <class Other>
  void on(const Other&) {}

  JobControl& control_;
  const bool several_hosts_;
  const std::function<void(JobNotice)> tell_;
  bool began_ = false;
  std::optional<JobNotice> failure_;  // the newest that was not told
};

}  // namespace

MakeJobPart job_notices(bool several_hosts, std::function<void(JobNotice)> tell) {
  return [several_hosts, tell = std::move(tell)](JobControl& control) -> std::unique_ptr<JobPart> {
    return std::make_unique<Notices>(control, several_hosts, tell);
  };
}

JobNotice notice_of(const Report& report) {
  return {.kind = JobNotice::Kind::end,
          .process = report.first ? report.first->name : "",
          .cause = report.outcome == Outcome::completed ? "" : std::string(to_string(report.outcome)),
          .why = report.cause,
          .exit_status = report.exit_status};
}

}  // namespace fleetrun::launcher
