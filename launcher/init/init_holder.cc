#include "launcher/init/init_holder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_set>
#include <utility>

#include "launcher/init/init_failpoint.h"
#include "launcher/init/process_table.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/process_environment.h"

namespace fleetrun::launcher {
namespace {

constexpr std::uint64_t kLifelineTag = std::uint64_t{1} << 32, kSignalTag = kLifelineTag + 1,
                        kLeaseTag = kLifelineTag + 2;
constexpr std::int64_t kMillisecond = 1'000'000, kSecond = 1000 * kMillisecond;
constexpr std::int64_t kLeisure = 300 * kMillisecond;  // of what a job that ended well left running
constexpr std::size_t kMaxNamed = 8;
constexpr std::int64_t kPatience = 5 * kSecond;  // with what was killed, until it is named

/// Its group, which has its pid; before its setsid() the process alone. Not reaped, the pid is not reused.
void signal_group(pid_t pid, int number) {
  if (::kill(-pid, number) != 0) ::kill(pid, number);
}

bool is_mark(const std::string& entry) {
  return entry.starts_with("FLEETRUN_POD=") || entry.starts_with("FLEETRUN_ROLE=") ||
         entry.starts_with("FLEETRUN_RANK=");
}

}  // namespace

InitHolder::InitHolder(InitLifeline& lifeline, int signals, SetupFrame setup, Means means)
    : lifeline_(lifeline),
      signals_(signals),
      setup_(std::move(setup)),
      cgroup_(std::move(means.cgroup)),
      namespace_(std::move(means.pid_namespace)),
      null_(::open("/dev/null", O_RDWR | O_CLOEXEC)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      record_delay_(failpoint_ms(environment_, "init-record-delay")),
      report_delay_(failpoint_ms(environment_, "init-report-delay")),
      patience_(kMillisecond * failpoint_ms(environment_, "init-kill-patience", kPatience / kMillisecond)),
      leisure_(kMillisecond * failpoint_ms(environment_, "init-leisure", kLeisure / kMillisecond)),
      context_{.base_environment = environment_.entries(),
               .cgroup_directory = cgroup_.directory.value(),
               .init_pid = ::getpid(),
               .open_files = setup_.open_files} {
  watch(lifeline_.socket(), kLifelineTag, EPOLLIN);
  watch(signals_, kSignalTag, EPOLLIN);
  watch(lease_.timer(), kLeaseTag, EPOLLIN);
}

void InitHolder::run() {
  on_lifeline();  // what came together with the setup
  for (;;) {
    sweep_on();
    lifeline_.flush();
    if (ending_ && sweeps_.empty()) break;
    epoll_event ready[64];
    const int count = ::epoll_wait(events_.value(), ready, 64, wait_limit_ms());
    // The kernel lists descriptors in the order in which they became ready: deaths are reported as they
    // happened.
    for (int i = 0; i < count; ++i) {
      if (ready[i].data.u64 < kLifelineTag) reap(static_cast<std::uint32_t>(ready[i].data.u64));
    }
    for (int i = 0; i < count; ++i) {
      if (ready[i].data.u64 == kSignalTag) on_signals();
      if (ready[i].data.u64 == kLifelineTag) on_lifeline();
    }
    // After the lifeline: a launcher that wakes up late may have renewed it.
    for (int i = 0; i < count; ++i) {
      if (ready[i].data.u64 == kLeaseTag) on_lease();
    }
  }
  for (const std::string& path : setup_.remove_files) ::unlink(path.c_str());
  for (const std::string& path : setup_.remove_directories) ::rmdir(path.c_str());
  lifeline_.send(EmptiedFrame{});
  lifeline_.flush();
}

void InitHolder::watch(int fd, std::uint64_t tag, std::uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = tag;
  ::epoll_ctl(events_.value(), EPOLL_CTL_ADD, fd, &event);
}

int InitHolder::wait_limit_ms() const {
  if (sweeps_.empty()) return -1;
  std::int64_t next = sweeps_.front().next_pass;
  for (const Sweep& sweep : sweeps_) next = std::min(next, sweep.next_pass);
  return static_cast<int>(std::max<std::int64_t>(0, next - monotonic_ns()) / kMillisecond + 1);
}

void InitHolder::on_signals() {
  signalfd_siginfo info[16];
  for (ssize_t got; (got = ::read(signals_, info, sizeof info)) > 0;) {
    const auto count = static_cast<std::size_t>(got) / sizeof info[0];
    for (std::size_t i = 0; i < count; ++i) {
      if (info[i].ssi_signo == SIGTERM) on_sigterm();
    }
  }
  reap_orphans();
}

/// Within a second they mean one thing: of a namespace's two inits each gets it, and one passes it on.
void InitHolder::on_sigterm() {
  const std::int64_t now = monotonic_ns();
  if (told_to_end_ && now - *told_to_end_ > kSecond) return end();
  if (!told_to_end_) lifeline_.send(ToldToEndFrame{});  // where fleetrun is gone, the lifeline ends
  told_to_end_ = told_to_end_.value_or(now);
}

void InitHolder::on_lifeline() {
  if (!lifeline_.receive()) {
    ::epoll_ctl(events_.value(), EPOLL_CTL_DEL, lifeline_.socket(), nullptr);
    // fleetrun is gone. Whoever reads what it wrote does not wait for what cannot be killed.
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(null_.value(), fd);
    end();
    return;
  }
  while (auto frame = lifeline_.next()) {
    if (const auto* start = std::get_if<StartFrame>(&*frame)) on_frame(*start);
    if (const auto* signal = std::get_if<SignalFrame>(&*frame)) on_frame(*signal);
    if (const auto* sweep = std::get_if<SweepFrame>(&*frame)) on_frame(*sweep);
    if (const auto* lease = std::get_if<LeaseFrame>(&*frame); lease && lease_.renew(*lease))
      lifeline_.send(StandsFrame{false});
    if (const auto* finish = std::get_if<FinishFrame>(&*frame)) end(finish->gently);
  }
}

void InitHolder::on_frame(const StartFrame& frame) {
  const UniqueFd log = lifeline_.take_descriptor();
  const UniqueFd input = frame.has_stdin ? lifeline_.take_descriptor() : UniqueFd();
  std::vector<UniqueFd> passed;
  for (std::size_t i = 0; i < frame.passed.size(); ++i) passed.push_back(lifeline_.take_descriptor());
  if (ending_) return;
  if (processes_.count(frame.index) != 0)
    throw Error(ErrorKind::data, "a process was started although it runs");

  Traces& traces = trace(frame);
  const int whole_pod = context_.cgroup_directory;
  if (whole_pod >= 0 && traces.cgroup.directory) context_.cgroup_directory = traces.cgroup.directory.value();
  StartedProcess started = start_process(
      frame, {.log = log.value(), .input = input ? input.value() : null_.value(), .passed = passed},
      context_);
  if (context_.cgroup_directory >= 0) context_.cgroup_directory = whole_pod;
  if (started.pid == -1) {
    lifeline_.send(FailedFrame{frame.index, exec_stage_name(started.fault.stage), started.fault.error});
    return;
  }
  traces.session = started.pid;
  record(frame, std::move(started));
}

/// What is known about the process's earlier lives stays valid for this one.
InitHolder::Traces& InitHolder::trace(const StartFrame& frame) {
  Traces& traces = traces_[frame.index];
  traces.marks.clear();
  std::copy_if(frame.environment.begin(), frame.environment.end(), std::back_inserter(traces.marks), is_mark);
  if (frame.alone && cgroup_.directory && !traces.cgroup.directory)
    traces.cgroup = make_cgroup(cgroup_.path + "/" + std::to_string(frame.index));
  return traces;
}

pid_t InitHolder::shown_pid(pid_t pid, int pidfd) const {
  return namespace_ ? namespace_->host_pid(pidfd) : pid;
}

void InitHolder::record(const StartFrame& frame, StartedProcess started) {
  pause_at_failpoint(record_delay_);
  const std::int64_t now = monotonic_ns();
  if (started.pidfd) watch(started.pidfd.value(), frame.index, EPOLLIN);
  index_of_[started.pid] = frame.index;
  started.slot->open_gate();
  const pid_t shown = shown_pid(started.pid, started.pidfd.value());
  processes_.emplace(frame.index, Process{.pid = started.pid,
                                          .shown_pid = shown,
                                          .pidfd = std::move(started.pidfd),
                                          .slot = std::move(*started.slot)});
  pause_at_failpoint(report_delay_);
  lifeline_.send(StartedFrame{frame.index, shown, now});
}

void InitHolder::on_frame(const SignalFrame& frame) {
  for (const auto& [index, process] : processes_) {
    if (frame.index != kEveryProcess && frame.index != index) continue;
    signal_group(process.pid, frame.number);
    if (frame.resume) signal_group(process.pid, SIGCONT);
  }
  if (frame.number != SIGKILL) return;
  const std::int64_t now = monotonic_ns();
  sweeps_.push_back({.index = frame.index, .watch_only = true, .began = now, .next_pass = now + patience_});
}

void InitHolder::on_frame(const SweepFrame& frame) {
  const std::int64_t now = monotonic_ns();
  sweeps_.push_back({.index = frame.index, .began = now, .next_pass = now});
}

void InitHolder::on_lease() {
  const InitLease::Due due = lease_.due();
  if (ending_ || processes_.empty()) return;
  if (due == InitLease::Due::stands && lease_.stand_still(descendants_of(::getpid())))
    lifeline_.send(StandsFrame{true});
  if (due != InitLease::Due::ends) return;
  lifeline_.send(LapsedFrame{});
  on_frame(SweepFrame{kEveryProcess});
  sweeps_.back().lapse = true;
}

void InitHolder::end(bool gently) {
  if (std::exchange(ending_, true)) {
    for (Sweep& sweep : sweeps_) sweep.leisure = 0;
    return;
  }
  sweeps_.clear();
  on_frame(SweepFrame{kEveryProcess});
  if (gently) sweeps_.back().leisure = leisure_;
}

void InitHolder::reap(std::uint32_t index) {
  const auto process = processes_.find(index);
  if (process == processes_.end()) return;
  int status = 0;
  rusage used = {};
  if (::wait4(process->second.pid, &status, WNOHANG, &used) == process->second.pid)
    report_exit(index, status, used.ru_maxrss);
}

/// Orphans have no pidfd. A child of ours that is met here died a moment ago and is next in the epoll set,
/// in order; without pidfds (an old kernel) it is reported from here.
void InitHolder::reap_orphans() {
  for (;;) {
    siginfo_t info = {};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno != ECHILD) reap_everything();  // a filter of system calls knows no waitid()
      return;
    }
    if (info.si_pid == 0) return;
    const auto known = index_of_.find(info.si_pid);
    if (known == index_of_.end())
      ::waitpid(info.si_pid, nullptr, WNOHANG);
    else if (!processes_.at(known->second).pidfd)
      reap(known->second);
    else
      break;
  }
  ::kill(::getpid(), SIGCHLD);  // blocked, so it stays pending: look for orphans again after the next round
}

bool InitHolder::reap_everything() {
  int status = 0;
  rusage used = {};
  pid_t pid = 0;
  while ((pid = ::wait4(-1, &status, WNOHANG, &used)) > 0) {
    const auto known = index_of_.find(pid);
    if (known != index_of_.end()) report_exit(known->second, status, used.ru_maxrss);
  }
  return pid < 0 && errno == ECHILD;
}

void InitHolder::report_exit(std::uint32_t index, int status, std::int64_t max_rss_kib) {
  const auto process = processes_.find(index);
  const ExecFault fault = process->second.slot.fault();
  const pid_t shown = process->second.shown_pid;
  index_of_.erase(process->second.pid);
  processes_.erase(process);
  if (fault.stage != 0)
    lifeline_.send(FailedFrame{index, exec_stage_name(fault.stage), fault.error});
  else
    lifeline_.send(ExitedFrame{index, shown, status, monotonic_ns(), max_rss_kib});
}

void InitHolder::sweep_on() {
  for (auto sweep = sweeps_.begin(); sweep != sweeps_.end();) {
    if (is_swept(*sweep)) {  // at once, when nothing is left
      if (ending_ || sweep->passes > 0) renew_cgroups(sweep->index);
      if (!ending_ && !sweep->watch_only && !sweep->lapse) lifeline_.send(SweptFrame{sweep->index});
      sweep = sweeps_.erase(sweep);
      continue;
    }
    if (monotonic_ns() >= sweep->next_pass) kill_pass(*sweep);
    ++sweep;
  }
}

bool InitHolder::is_swept(Sweep& sweep) {
  if (sweep.watch_only)
    return sweep.index == kEveryProcess ? processes_.empty() : processes_.count(sweep.index) == 0;
  if (sweep.index == kEveryProcess) {
    if (!reap_everything()) return false;
    return cgroup_.path.empty() || cgroup_is_empty(cgroup_.path);
  }
  if (processes_.count(sweep.index) != 0) return false;
  const auto traces = traces_.find(sweep.index);
  if (traces == traces_.end()) return true;
  const std::string& cgroup = traces->second.cgroup.path;
  // A process that was forked during the first look is seen by the second.
  const bool none_found = cgroup.empty() ? left_over(sweep.index).empty() && left_over(sweep.index).empty()
                                         : cgroup_is_empty(cgroup);
  // A process leaves its cgroup, and loses its environment, a moment before it is dead.
  std::erase_if(sweep.killed, [this](pid_t pid) {
    if (index_of_.count(pid) == 0) ::waitpid(pid, nullptr, WNOHANG);
    return ::kill(pid, 0) != 0 && errno == ESRCH;
  });
  return none_found && sweep.killed.empty();
}

/// A cgroup in which cgroup.kill was used is not used again: Linux 6.14 and later kill what is cloned into it
/// (clone3 compares its count of kills with that of the caller's cgroup).
void InitHolder::renew_cgroups(std::uint32_t index) {
  for (auto& [owner, traces] : traces_) {
    if (index != kEveryProcess && index != owner) continue;
    if (!traces.cgroup.path.empty()) remove_cgroup(traces.cgroup.path);
    traces.cgroup = {};
  }
  if (index != kEveryProcess || cgroup_.path.empty()) return;
  remove_cgroup(cgroup_.path);
  if (ending_) return;
  CgroupLeaf next = make_cgroup(cgroup_.path);
  if (next.path.empty()) next.path = cgroup_.path;
  cgroup_ = std::move(next);
  context_.cgroup_directory = cgroup_.directory.value();
}

void InitHolder::kill_pass(Sweep& sweep) {
  const std::int64_t now = monotonic_ns(), age = now - sweep.began;
  sweep.next_pass = now + (age < kSecond ? 5 * kMillisecond : age < kPatience ? 50 * kMillisecond : kSecond);
  if (age >= patience_) name_unkillable(sweep);
  if (sweep.watch_only || age < sweep.leisure) return;
  if (std::exchange(sweep.leisure, 0) > 0) name_left_running();
  ++sweep.passes;
  if (sweep.index == kEveryProcess) {
    // The first blow is the kernel's where there is a cgroup; what is not in it is searched for after that.
    if (cgroup_.path.empty() || sweep.passes > 1 || !kill_cgroup(cgroup_.path))
      kill_everything_below(cgroup_.path);
  } else {
    const auto process = processes_.find(sweep.index);
    if (process != processes_.end()) signal_group(process->second.pid, SIGKILL);
    const std::vector<pid_t> found = left_over(sweep.index);
    sweep.killed.insert(found.begin(), found.end());
    const auto traces = traces_.find(sweep.index);
    if (traces == traces_.end() || traces->second.cgroup.path.empty() ||
        !kill_cgroup(traces->second.cgroup.path))
      for (const pid_t pid : found) ::kill(pid, SIGKILL);
  }
}

/// What is in the cgroup of one process; without that, its orphans with all that is below them: they are in
/// its session, or have its environment.
std::vector<pid_t> InitHolder::left_over(std::uint32_t index) const {
  std::vector<pid_t> found;
  const auto traces = traces_.find(index);
  if (traces == traces_.end()) return found;
  if (!traces->second.cgroup.path.empty()) return processes_in_cgroup(traces->second.cgroup.path);
  for (const pid_t child : own_children()) {
    if (index_of_.count(child) != 0 || state_of(child).state == "Z") continue;
    if (session_of(child) == traces->second.session || was_started_with(child, traces->second.marks))
      found.push_back(child);
  }
  const std::vector<pid_t> orphans = found;
  for (const pid_t orphan : orphans) {
    const std::vector<pid_t> below = descendants_of(orphan);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

std::vector<pid_t> InitHolder::still_alive(const Sweep& sweep) const {
  if (!sweep.watch_only && sweep.index == kEveryProcess) return descendants_of(::getpid());
  std::vector<pid_t> alive = sweep.watch_only ? std::vector<pid_t>() : left_over(sweep.index);
  for (const auto& [index, process] : processes_) {
    if (sweep.index == kEveryProcess || sweep.index == index) alive.push_back(process.pid);
  }
  return alive;
}

void InitHolder::name_unkillable(Sweep& sweep) {
  for (const pid_t pid : still_alive(sweep)) {
    if (!sweep.told.insert(pid).second) continue;
    const KernelProcess process = state_of(pid);
    // It is gone, or /proc hides it (hidepid).
    if (process.name.empty() && ::kill(pid, 0) != 0 && errno == ESRCH) continue;
    const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    lifeline_.send(
        UnkillableFrame{shown_pid(pid, pidfd.value()), process.name, process.state, process.where});
  }
}

void InitHolder::name_left_running() {
  LeftRunningFrame frame;
  for (const pid_t pid : descendants_of(::getpid())) {
    const std::string command = command_of(pid);
    if (command.empty()) continue;
    if (frame.processes.size() == kMaxNamed) {
      ++frame.others;
      continue;
    }
    const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    frame.processes.push_back(command + " (pid " + std::to_string(shown_pid(pid, pidfd.value())) + ")");
  }
  if (!frame.processes.empty()) lifeline_.send(frame);
}

}  // namespace fleetrun::launcher
