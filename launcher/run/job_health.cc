#include "launcher/run/job_health.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launcher/run/hang_watch.h"
#include "launcher/run/injector.h"
#include "runtime/base/own_file.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/unique_fd.h"
#include "runtime/base/write_all.h"

namespace fleetrun::launcher {
namespace {

constexpr int kMaxStackFiles = 10;  // of one attempt

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

/// True when all of `text` is in the new file at `path`.
bool write_file(const std::string& path, const std::string& text) {
  const UniqueFd file(open_own(path, O_WRONLY | O_CREAT | O_EXCL, Readers::owner));
  return file && write_all(file.value(), text);
}

class JobHealth final : public JobPart {
 public:
  JobHealth(JobControl& control, const JobConfig& config, const Environ& environment,
            std::shared_ptr<HeartbeatReader> heartbeats)
      : control_(control), heartbeats_(std::move(heartbeats)) {
    const auto tell = [this](const JobEvent& event) { control_.tell(event); };
    if (!config.inject.empty()) {
      auto targets = injection_targets(control.plan());
      // 32 bits of it are short enough to be typed again.
      const std::uint64_t seed = config.inject_seed.value_or(random_number<std::uint32_t>());
      injector_ = make_injector(control.loop(), config.inject, std::move(targets), seed, tell);
    }
    HangWatchCalls calls;
    calls.log_bytes = [this](std::size_t index) { return size_of(control_.logs()[index]); };
    calls.on_hang = [this](const HangReport& report, const std::vector<ProcessStacks>& stacks) {
      std::string text = report.text + keep(stacks, report.culprits.front());
      text.pop_back();  // its last newline
      control_.report_hang({report.silent, text, report.culprits, report.why});
    };
    if (injector_ && needs_heartbeats(config.inject)) {
      calls.on_step = [this](std::size_t index, std::int64_t step) { injector_->on_progress(index, step); };
    }
    calls.tell = tell;
    if (watches_steps(config))
      watch_ = make_hang_watch(control.loop(), watched_processes(control.plan()),
                               {config.hang, {.environment = environment}}, std::move(calls));
    if (watch_)
      *heartbeats_ = [this](std::size_t index) -> const Heartbeat& { return watch_->heartbeat(index); };
  }
  ~JobHealth() override { *heartbeats_ = nullptr; }
  JobHealth(const JobHealth&) = delete;
  JobHealth& operator=(const JobHealth&) = delete;

  void on_event(const JobEvent& event) override {
    if (injector_) injector_->on_event(event);
    if (watch_) watch_->on_event(event);
  }

  std::chrono::milliseconds start_delay(std::size_t index, int attempt) override {
    const auto delay = injector_ ? injector_->start_delay(index, attempt) : std::chrono::milliseconds{};
    if (delay.count() > 0)
      control_.tell(event::Injected{control_.plan().processes[index].name + " starts " +
                                    std::to_string(delay.count()) + " ms later, in attempt " +
                                    std::to_string(attempt)});
    return delay;
  }

  int open_descriptor(std::string_view variable, std::size_t index) override {
    return watch_ && variable == kHeartbeatVariable ? watch_->open_heartbeat(index) : -1;
  }

  std::optional<std::int64_t> progress() override { return watch_ ? watch_->progress() : std::nullopt; }

 private:
  /// Writes all stacks to a file of the culprit's attempt. Returns the line that says where.
  std::string keep(const std::vector<ProcessStacks>& stacks, std::size_t culprit) const {
    const Plan& plan = control_.plan();
    const int attempt = control_.logs()[culprit].attempt;
    std::string name = "/stacks.txt";
    for (int i = 1; !stacks.empty() && i <= kMaxStackFiles; ++i) {
      if (write_file(attempt_directory(plan, attempt) + name, all_stacks_text(stacks)))
        return "all threads: " + plan.log_dir_shown + "/" + plan.pod_name + "/" + std::to_string(attempt) +
               name + "\n";
      name = "/stacks." + std::to_string(i) + ".txt";
    }
    return {};
  }

  JobControl& control_;
  std::shared_ptr<HeartbeatReader> heartbeats_;
  std::unique_ptr<Injector> injector_;
  std::unique_ptr<HangWatch> watch_;
};

}  // namespace

void check_injections(const JobConfig& config, const Plan& plan) {
  check_injections(config.inject, injection_targets(plan));
}

MakeJobPart job_health(const JobConfig& config, const Environ& environment,
                       std::shared_ptr<HeartbeatReader> heartbeats) {
  if (config.inject.empty() && !watches_steps(config))
    return [](JobControl&) { return std::unique_ptr<JobPart>(); };
  return [&config, &environment, heartbeats = std::move(heartbeats)](JobControl& control) {
    return std::make_unique<JobHealth>(control, config, environment, heartbeats);
  };
}

}  // namespace fleetrun::launcher
