// Whom a session tells what its job does: the terminal of fleetrun, whose text is cli's.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/failure/report.h"
#include "launcher/job/job_history.h"
#include "launcher/model/job_config.h"
#include "launcher/model/job_event.h"
#include "launcher/model/plan.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {

/// A page that shows the job, for as long as this is there.
class SessionPage {
 public:
  virtual ~SessionPage() = default;
};

class SessionConsole {
 public:
  virtual ~SessionConsole() = default;

  /// Standard output, as it is.
  virtual void print(const std::string& text) = 0;
  /// Standard error, as it is, at any level.
  virtual void raw(const std::string& text) = 0;
  virtual void write(LogLevel level, const std::string& text) = 0;
  /// From any thread.
  virtual void warn_apart(const std::string& text) = 0;
  /// Whatever the level: the answer to a signal.
  virtual void tell(const std::string& text) = 0;
  virtual void refuse(const Error& error) = 0;
  virtual void show_configuration(const JobConfig& config) = 0;
  virtual void show_start(const Plan& plan) = 0;
  /// Of --ui, whose address it shows; nullptr: none was asked for. One thread only may run.
  /// Throws: Error where it cannot be served.
  virtual std::unique_ptr<SessionPage> serve_page(const JobConfig& config, const Plan& plan) = 0;
  /// Who tells the milestones while the job runs. `plan` is borrowed.
  virtual std::unique_ptr<JobObserver> reporter(const Plan& plan) = 0;
  /// How long a line may wait for a terminal that does not read; nullopt: for ever.
  virtual void set_patience(std::optional<std::chrono::milliseconds> patience) = 0;
  /// `screen`: what people see of the failure that ended the job; empty where none did.
  virtual void show_end(const Report& report, const Plan& plan, std::string_view last_lines,
                        const std::string& screen) = 0;
  virtual std::string failure_screen(const Report& report, const Plan& plan, const JobHistory& history,
                                     std::string_view last_lines) const = 0;
};

}  // namespace fleetrun::launcher
