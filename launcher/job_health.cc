#include "launcher/job_health.h"

#include <sys/stat.h>

#include <utility>

#include "launcher/hang_watch.h"
#include "launcher/injector.h"

namespace fleetrun::launcher {
namespace {

constexpr int kHeartbeatNumber = 3;  // the descriptor, in the process

std::vector<InjectionTarget> injection_targets(const Plan& plan) {
  std::vector<InjectionTarget> targets;
  for (const ProcessSpec& process : plan.processes) {
    const RolePlan& role = plan.roles[process.role];
    targets.push_back({role.name, process.identity.rank, role.serves});
  }
  return targets;
}

std::vector<WatchedProcess> watched_processes(const Plan& plan) {
  std::vector<WatchedProcess> watched;
  for (const ProcessSpec& process : plan.processes) {
    const RolePlan& role = plan.roles[process.role];
    watched.push_back({process.name, role.name, process.identity.rank, role.serves});
  }
  return watched;
}

std::int64_t size_of(const LogFile& log) {
  struct stat info = {};
  return ::fstat(log.fd.value(), &info) == 0 ? info.st_size : 0;
}

class JobHealth final : public JobPart {
 public:
  JobHealth(JobControl& control, const JobConfig& config, const Environ& environment) : control_(control) {
    const auto tell = [this](const JobEvent& event) { control_.tell(event); };
    if (!config.inject.empty()) {
      auto targets = injection_targets(control.plan());
      check_injections(config.inject, targets);
      const std::uint64_t seed = config.inject_seed.value_or(draw_seed());
      injector_ = make_injector(control.loop(), config.inject, std::move(targets), seed, tell);
    }
    HangWatchCalls calls;
    calls.log_bytes = [this](std::size_t index) { return size_of(control_.logs()[index]); };
    calls.on_hang = [this](const HangReport& report, const std::vector<ProcessStacks>&) {
      control_.report_hang(report.culprits, report.silent, report.text);
    };
    if (injector_ && needs_heartbeats(config.inject)) {
      calls.on_step = [this](std::size_t index, std::int64_t step) { injector_->on_progress(index, step); };
    }
    calls.tell = tell;
    if (config.hang.timeout.count() > 0 || control.plan().restart.any() || calls.on_step)
      watch_ = make_hang_watch(control.loop(), watched_processes(control.plan()),
                               {config.hang, {.environment = environment}}, std::move(calls));
  }

  void on_event(const JobEvent& event) override {
    if (injector_) injector_->on_event(event);
    if (watch_) watch_->on_event(event);
  }

  std::chrono::milliseconds start_delay(std::size_t index, int attempt) override {
    return injector_ ? injector_->start_delay(index, attempt) : std::chrono::milliseconds{};
  }

  void prepare_start(std::size_t index, StartExtras& extras) override {
    const int fd = watch_ ? watch_->open_heartbeat(index) : -1;
    if (fd < 0) return;
    const int number = kHeartbeatNumber + static_cast<int>(extras.passed.size());
    extras.passed.push_back({fd, number});
    extras.environment.push_back("FLEETRUN_HEARTBEAT_FD=" + std::to_string(number));
  }

  std::optional<std::int64_t> progress() override { return watch_ ? watch_->progress() : std::nullopt; }

 private:
  JobControl& control_;
  std::unique_ptr<Injector> injector_;
  std::unique_ptr<HangWatch> watch_;
};

}  // namespace

MakeJobPart job_health(const JobConfig& config, const Environ& environment) {
  if (config.inject.empty() && config.hang.timeout.count() == 0 && !restart_rules(config).any())
    return [](JobControl&) { return std::unique_ptr<JobPart>(); };
  return [&config, &environment](JobControl& control) {
    return std::make_unique<JobHealth>(control, config, environment);
  };
}

}  // namespace fleetrun::launcher
