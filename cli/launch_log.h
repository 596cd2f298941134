// The LAUNCH lines that Paddle's launcher prints, on standard error:
//
//   LAUNCH INFO 2022-05-18 11:27:17,761 Job: default, mode ps, replicas 1[1:1], elastic False
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launcher/failure/report.h"
#include "launcher/model/job_config.h"
#include "launcher/model/plan.h"

namespace fleetrun::cli {

class LaunchLog {
 public:
  LaunchLog(int fd, launcher::LogLevel min) : fd_(fd), min_(min) {}

  /// One line per line of `text`, the first one with level and time, as Paddle prints them.
  void write(launcher::LogLevel level, const std::string& text);
  void debug(const std::string& text) { write(launcher::LogLevel::debug, text); }
  void info(const std::string& text) { write(launcher::LogLevel::info, text); }
  void warning(const std::string& text) { write(launcher::LogLevel::warning, text); }
  void error(const std::string& text) { write(launcher::LogLevel::error, text); }

  /// What is said whatever the level: the answer to a signal.
  void tell(const std::string& text) {
    using launcher::LogLevel;
    write(shows(LogLevel::info) ? LogLevel::info : LogLevel::critical, text);
  }

  /// How long a line may wait for a reader that does not read; what is still left then is dropped. nullopt:
  /// for ever.
  void set_patience(std::optional<std::chrono::milliseconds> patience) { patience_ = patience; }

  /// Are lines of this level printed?
  bool shows(launcher::LogLevel level) const noexcept { return level >= min_; }

  /// Bytes as they are, but on a terminal, whatever the level.
  void raw(const std::string& bytes);

  /// The "Configuration" block where Paddle's flags are used or debug lines are shown, the job, and what was
  /// understood differently from what was asked.
  void show_configuration(const launcher::JobConfig& config);

  /// The lines about the pod that is about to start.
  void show_start(const launcher::Plan& plan);

  /// How it ended: the first failure, its cause, the end of its log.
  void show_end(const launcher::Report& report, const launcher::Plan& plan, const std::string& last_lines);

 private:
  int fd_;
  launcher::LogLevel min_;
  std::optional<std::chrono::milliseconds> patience_;
};

}  // namespace fleetrun::cli
