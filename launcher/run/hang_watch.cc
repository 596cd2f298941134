#include "launcher/run/hang_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "launcher/host/resource_usage.h"
#include "launcher/run/heartbeat.h"
#include "launcher/run/heartbeat_pace.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kStepPeriod{20};        // somebody waits for a step
constexpr std::chrono::milliseconds kHearingPeriod{5'000};  // nobody waits for anything

std::vector<bool> serving(const std::vector<WatchedProcess>& processes) {
  std::vector<bool> serves;
  for (const WatchedProcess& process : processes) serves.push_back(process.serves);
  return serves;
}

std::vector<std::string> roles_of(const std::vector<WatchedProcess>& processes) {
  std::vector<std::string> roles;
  for (const WatchedProcess& process : processes) roles.push_back(process.role);
  return roles;
}

std::vector<std::string> names_of(const std::vector<WatchedProcess>& processes) {
  std::vector<std::string> names;
  for (const WatchedProcess& process : processes) names.push_back(process.name);
  return names;
}

/// Whether something traces the process: a debugger, strace.
bool is_traced(pid_t pid) {
  const UniqueFd file(::open(("/proc/" + std::to_string(pid) + "/status").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  const ssize_t size = file ? ::read(file.value(), text.data(), text.size()) : 0;
  const std::string_view status(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  constexpr std::string_view kField = "\nTracerPid:\t";
  const std::size_t field = status.find(kField);
  return field != status.npos && !status.substr(field + kField.size()).starts_with("0\n");
}

class TimedWatch final : public HangWatch {
 public:
  TimedWatch(asio::io_context& loop, std::vector<WatchedProcess> processes, HangWatchSettings settings,
             HangWatchCalls calls)
      : loop_(loop),
        processes_(std::move(processes)),
        settings_(std::move(settings)),
        calls_(std::move(calls)),
        heartbeats_(processes_.size()),
        judge_(settings_.rules, serving(processes_)),
        pace_(roles_of(processes_)),
        seen_(processes_.size()),
        timer_(loop) {}

  int open_heartbeat(std::size_t index) override {
    hear(index);  // the last words of the one before
    return heartbeats_.open(index);
  }

  const Heartbeat& heartbeat(std::size_t index) override { return hear(index); }

  std::optional<std::int64_t> progress() override {
    for (std::size_t i = 0; i < processes_.size(); ++i) hear(i);
    return progress_;
  }

  void on_event(const JobEvent& event) override {
    std::visit([this](const auto& e) { on(e); }, event);
  }

 private:
  struct Seen {
    pid_t pid = -1;  // of the process while it runs
    Vitals vitals;
    bool reported = false;
  };

  bool judges() const { return settings_.rules.timeout.count() > 0; }

  template <class Other>
  void on(const Other&) {}

  void on(const event::AttemptBegan&) { stopping_ = standing_ = false; }

  void on(const event::ProcessStarted& started) {
    heartbeats_.started(started.index);
    seen_.at(started.index) = {};
    seen_[started.index].pid = started.pid;
    judge_.forget(started.index);
    pace_.forget(started.index);
    if (!std::exchange(ticking_, true)) tick();
  }

  /// Who stands still is not hanging, and has been silent for no time afterwards.
  void on(const event::PodStands& stands) {
    standing_ = stands.still;
    reading_.reset();
    for (std::size_t i = 0; i < seen_.size(); ++i) judge_.forget(i);
  }

  void on(const event::ProcessNotStarted& failed) { heartbeats_.started(failed.index); }

  void on(const event::ProcessExited& exited) {
    hear(exited.index);
    seen_.at(exited.index).pid = -1;
  }

  void on(const event::StopBegan&) {
    stopping_ = true;
    reading_.reset();
  }

  void on(const event::JobEnded&) {
    ticking_ = false;
    timer_.cancel();
    reading_.reset();
  }

  /// What a process said since the last time.
  const Heartbeat& hear(std::size_t index) {
    const Heartbeat& heartbeat = heartbeats_.read(index);
    if (heartbeat.step) progress_ = std::max(progress_.value_or(*heartbeat.step), *heartbeat.step);
    return heartbeat;
  }

  void tick() {
    timer_.expires_after(calls_.on_step ? kStepPeriod
                         : judges()     ? look_period(settings_.rules)
                                        : kHearingPeriod);
    timer_.async_wait([this](const error_code& error) {
      if (error || !ticking_) return;
      tick();
      look();
    });
  }

  void look() {
    std::vector<Heartbeat> heartbeats;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      heartbeats.push_back(hear(i));
      const auto before = seen_[i].vitals.step;
      if (calls_.on_step && heartbeats[i].step && heartbeats[i].step != before && seen_[i].pid > 0)
        calls_.on_step(i, *heartbeats[i].step);
    }
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    for (const Straggler& straggler : pace_.look(now, heartbeats))
      warn(processes_[straggler.index].name + " " + to_string(straggler));
    if (!judges()) {
      for (std::size_t i = 0; i < seen_.size(); ++i) seen_[i].vitals.step = heartbeats[i].step;
      return;
    }
    if (stopping_ || standing_ || reading_) return;
    const std::vector<Silence> silent = silent_now(heartbeats);
    if (!silent.empty()) read_stacks_of(silent);
  }

  std::vector<Silence> silent_now(const std::vector<Heartbeat>& heartbeats) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    std::vector<Vitals> vitals = vitals_of(heartbeats);
    HangFindings findings = judge_.look(now, vitals);
    if (find_debuggers(findings.silent, vitals)) findings = judge_.look(now, vitals);
    for (const std::size_t index : findings.debugged)
      warn(processes_[index].name + " is under a debugger, and is not watched for hangs meanwhile");
    return findings.silent;
  }

  std::vector<Vitals> vitals_of(const std::vector<Heartbeat>& heartbeats) {
    std::vector<pid_t> quiet(seen_.size(), -1);
    const bool heartbeat_is_enough = !settings_.rules.by.any() || settings_.rules.by.heartbeat;
    bool any = false;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      Vitals& vitals = seen_[i].vitals;
      const bool beat = heartbeats[i].beats != vitals.beats;
      vitals.running = seen_[i].pid > 0 && !seen_[i].reported;
      vitals.beats = heartbeats[i].beats;
      vitals.step = heartbeats[i].step;
      if (!vitals.running || (beat && heartbeat_is_enough)) {
        vitals.stopped = vitals.debugged = false;
        continue;
      }
      quiet[i] = seen_[i].pid;
      any = true;
    }
    if (any) look_closer(quiet);
    std::vector<Vitals> all;
    for (const Seen& seen : seen_) all.push_back(seen.vitals);
    return all;
  }

  /// `quiet`: a pid where it is to be looked at, else -1.
  void look_closer(const std::vector<pid_t>& quiet) {
    const std::vector<ProcStat> all = read_processes();
    const std::vector<ResourceUsage> usage = sum_usage(quiet, all);
    for (std::size_t i = 0; i < quiet.size(); ++i) {
      if (quiet[i] <= 0) continue;
      Vitals& vitals = seen_[i].vitals;
      vitals.cpu_seconds = usage[i].cpu_seconds;
      vitals.stopped = usage[i].state == 'T';
      vitals.log_bytes = calls_.log_bytes ? calls_.log_bytes(i) : 0;
      vitals.debugged = vitals.debugged && is_debugged(quiet[i], all);
    }
  }

  /// The process, or one that it started.
  static bool is_debugged(pid_t pid, const std::vector<ProcStat>& all) {
    return std::any_of(all.begin(), all.end(), [pid](const ProcStat& process) {
      return (process.pid == pid || process.session == pid) && is_traced(process.pid);
    });
  }

  /// Only who would be reported is worth the question. True when one of them is under a debugger.
  bool find_debuggers(const std::vector<Silence>& silent, std::vector<Vitals>& vitals) {
    if (silent.empty()) return false;
    const std::vector<ProcStat> all = read_processes();
    bool any = false;
    for (const Silence& silence : silent) {
      const std::size_t i = silence.index;
      vitals[i].debugged = seen_[i].vitals.debugged = is_debugged(seen_[i].pid, all);
      any = any || vitals[i].debugged;
    }
    return any;
  }

  void read_stacks_of(const std::vector<Silence>& silent) {
    std::vector<StackTarget> targets;
    const auto add = [&](std::size_t i) {
      const bool there = std::any_of(targets.begin(), targets.end(),
                                     [i](const StackTarget& target) { return target.index == i; });
      if (seen_[i].pid > 0 && !there)
        targets.push_back({i, processes_[i].role, processes_[i].rank, seen_[i].pid});
    };
    for (const Silence& silence : silent) add(silence.index);
    for (std::size_t i = 0; i < seen_.size(); ++i) add(i);
    try {
      reading_ = read_stacks(
          loop_, targets, settings_.stacks,
          [this, silent](const std::vector<ProcessStacks>& stacks) { on_stacks(silent, stacks); });
    } catch (const Error& error) {
      warn(std::string("no stacks: ") + error.what());
      on_stacks(silent, {});
    }
  }

  /// Some time has passed: who lives again is not reported.
  void on_stacks(const std::vector<Silence>& before, const std::vector<ProcessStacks>& stacks) {
    reading_.reset();
    std::vector<Heartbeat> heartbeats;
    for (std::size_t i = 0; i < seen_.size(); ++i) heartbeats.push_back(hear(i));
    const std::vector<Silence> silent = silent_now(heartbeats);
    if (silent.empty()) {
      if (seen_[before.front().index].pid > 0)
        warn(processes_[before.front().index].name + " " + before.front().why + ", and goes on");
      return;
    }
    const HangReport report = make_hang_report(silent, stacks, names_of(processes_));
    for (const std::size_t index : report.culprits) seen_[index].reported = true;
    for (std::size_t i = 0; i < seen_.size(); ++i) judge_.forget(i);
    calls_.on_hang(report, stacks);
  }

  void warn(const std::string& text) { calls_.tell(event::Warning{text}); }

  asio::io_context& loop_;
  std::vector<WatchedProcess> processes_;
  HangWatchSettings settings_;
  HangWatchCalls calls_;
  Heartbeats heartbeats_;
  HangJudge judge_;
  PaceJudge pace_;
  std::vector<Seen> seen_;
  asio::steady_timer timer_;
  std::unique_ptr<StackReading> reading_;
  std::optional<std::int64_t> progress_;
  bool ticking_ = false, stopping_ = false, standing_ = false;  // all stand still, by their lease
};

}  // namespace

std::unique_ptr<HangWatch> make_hang_watch(asio::io_context& loop, std::vector<WatchedProcess> processes,
                                           HangWatchSettings settings, HangWatchCalls calls) {
  return std::make_unique<TimedWatch>(loop, std::move(processes), std::move(settings), std::move(calls));
}

}  // namespace fleetrun::launcher
