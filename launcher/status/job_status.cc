#include "launcher/status/job_status.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/host/run_directory.h"
#include "launcher/logs/log_files.h"
#include "runtime/base/terminal_text.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

constexpr off_t kTail = 4096;  // of a log, where its last line is looked for

/// How long the escape sequence at the beginning of `text` is (text[0] is ESC).
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] != '[' && text[1] != ']') return 2;
  const bool command = text[1] == ']';  // ends with BEL or ESC backslash; "[" with a letter or the like
  for (std::size_t i = 2; i < text.size(); ++i) {
    if (command ? text[i] == '\a' : text[i] >= '@' && text[i] <= '~') return i + 1;
    if (command && text[i] == '\x1b') return std::min(i + 2, text.size());
  }
  return text.size();
}

std::string shown(std::string_view line, std::size_t max) {
  std::string text;
  while (!line.empty() && text.size() < max) {
    const auto byte = static_cast<unsigned char>(line.front());
    std::size_t length = 1;
    if (byte == 0x1b) {
      length = escape_length(line);
    } else if (byte == '\t') {
      text += ' ';
    } else if (byte >= 0x20 && byte != 0x7f) {
      length = utf8_length(line);
      if (length == 0) text += '?';
      if (text.size() + length > max) break;
      if (!acts_on_terminal(line.substr(0, length))) text.append(line.substr(0, length));
      length = std::max<std::size_t>(length, 1);
    }
    line.remove_prefix(length);
  }
  const std::size_t end = text.find_last_not_of(' ');
  text.resize(end == text.npos ? 0 : end + 1);
  return text;
}

/// The end of the file; its size goes to `size`.
std::string read_tail(const std::string& path, std::optional<std::uint64_t>& size) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) return {};
  const off_t end = ::lseek(fd.value(), 0, SEEK_END);
  if (end >= 0) size = static_cast<std::uint64_t>(end);
  if (end <= 0) return {};
  std::string tail(static_cast<std::size_t>(std::min(end, kTail)), '\0');
  const ssize_t got = ::pread(fd.value(), tail.data(), tail.size(), std::max<off_t>(end - kTail, 0));
  tail.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return tail;
}

}  // namespace

bool is_alive(ProcessState state) noexcept {
  return state == ProcessState::running || state == ProcessState::stopping;
}

std::string_view to_string(ProcessState state) noexcept {
  constexpr std::string_view kNames[] = {"waiting", "running", "stopping", "ended", "failed", "not_started"};
  return kNames[static_cast<int>(state)];
}

std::string_view to_string(JobPhase phase) noexcept {
  constexpr std::string_view kNames[] = {"starting", "running", "stopping", "restarting", "ended"};
  return kNames[static_cast<int>(phase)];
}

StatusBoard::StatusBoard(const Plan& plan, std::int64_t began_at)
    : plan_(plan), live_(plan.processes.size()), waiting_(live_.size()), began_at_(began_at) {}

void StatusBoard::on_event(const JobEvent& event) {
  std::visit([this](const auto& happened) { fold(happened); }, event);
}

void StatusBoard::fold(const event::Contained& contained) {
  contained_ = contained;
}

void StatusBoard::fold(const event::AttemptBegan& began) {
  attempt_ = began.attempt;
  if (phase_ != JobPhase::restarting) return;  // the first attempt, or one process's
  phase_ = JobPhase::starting;
  phase_reason_.clear();
  for (Live& process : live_) {
    if (!is_alive(process.state)) become(process, ProcessState::waiting);
  }
}

void StatusBoard::fold(const event::ProcessStarted& started) {
  Live& process = live_.at(started.index);
  process.pid = started.pid;
  become(process, ProcessState::running);
  process.attempt = started.attempt;
  process.started_at = started.at;
  process.ended_at.reset();
  ++process.starts;
  if (phase_ == JobPhase::starting && waiting_ == 0) phase_ = JobPhase::running;
}

void StatusBoard::fold(const event::ProcessExited& exited) {
  Live& process = live_.at(exited.index);
  become(process, exited.asked || exited.reason.ok() ? ProcessState::ended : ProcessState::failed);
  process.exit = exited.reason;
  process.ended_at = exited.at;
}

void StatusBoard::fold(const event::ProcessNotStarted& failed) {
  Live& process = live_.at(failed.index);
  become(process, ProcessState::not_started);
  process.attempt = failed.attempt;
}

void StatusBoard::fold(const event::StopBegan& stop) {
  if (phase_ != JobPhase::restarting) {
    phase_ = JobPhase::stopping;
    phase_reason_ = stop.why;
  }
  for (const std::size_t index : stop.waiting_for) {
    if (is_alive(live_.at(index).state)) become(live_[index], ProcessState::stopping);
  }
}

void StatusBoard::fold(const event::FailureExplained& explained) {
  live_.at(explained.index).cause = explained.cause;
}

void StatusBoard::fold(const event::RestartDecided& decided) {
  Live& failed = live_.at(decided.index);
  restarts_.push_back({.next_attempt = decided.next_attempt,
                       .scope = decided.scope,
                       .process = plan_.processes[decided.index].name,
                       .kind = failed.cause.kind,
                       .cause = failed.cause.text,
                       .why = decided.why});
  if (decided.scope == RestartScope::process) {
    if (!is_alive(failed.state)) become(failed, ProcessState::waiting);
    return;
  }
  phase_ = JobPhase::restarting;
  phase_reason_ = decided.why;
  for (Live& process : live_) {
    if (is_alive(process.state)) become(process, ProcessState::stopping);
  }
}

void StatusBoard::become(Live& process, ProcessState state) {
  waiting_ -= process.state == ProcessState::waiting ? 1 : 0;
  waiting_ += state == ProcessState::waiting ? 1 : 0;
  process.state = state;
}

void StatusBoard::fold(const event::WorldBegan& began) {
  generation_ = began.generation;
  hosts_ = began.hosts;
  servers_ = began.server_endpoints;
}

void StatusBoard::fold(const event::WorldEnded& ended) {
  phase_ = JobPhase::restarting;
  phase_reason_ = ended.why;
}

void StatusBoard::fold(const event::JobEnded& ended) {
  phase_ = JobPhase::ended;
  exit_status_ = ended.exit_status;
}

JobStatus StatusBoard::status(std::int64_t now) const {
  JobStatus status{.job_id = plan_.job_id,
                   .pod = plan_.pod_name,
                   .mode = std::string(fleetrun::to_string(plan_.mode)),
                   .containment = contained_.level,
                   .cgroup = contained_.cgroup,
                   .log_dir = plan_.log_dir,
                   .fleetrun_pid = ::getpid(),
                   .init_pid = contained_.init_pid,
                   .phase = phase_,
                   .phase_reason = phase_reason_,
                   .attempt = attempt_,
                   .began_at = began_at_,
                   .now = now,
                   .processes = {},
                   .restarts = restarts_,
                   .generation = generation_,
                   .hosts = hosts_,
                   .servers = servers_,
                   .logs_truncated = logs_truncated_,
                   .exit_status = exit_status_};
  if (servers_.empty() && !plan_.processes.empty()) {
    for (const Endpoint& server : plan_.processes.front().identity.servers)
      status.servers.push_back(to_string(server));
  }
  status.processes.reserve(live_.size());
  for (std::size_t i = 0; i < live_.size(); ++i) {
    const ProcessSpec& spec = plan_.processes[i];
    const Live& live = live_[i];
    status.processes.push_back({.role = plan_.roles.at(spec.role).name,
                                .name = spec.name,
                                .rank = spec.identity.rank,
                                .pid = live.pid,
                                .state = live.state,
                                .attempt = live.attempt,
                                .starts = live.starts,
                                .started_at = live.started_at,
                                .ended_at = live.ended_at,
                                .exit = live.exit,
                                .cause = live.cause.text,
                                .log = attempt_directory(plan_, live.attempt) + "/" + spec.log_name,
                                .usage = std::nullopt,
                                .last_line = std::nullopt,
                                .log_bytes = std::nullopt,
                                .metrics = std::nullopt});
  }
  return status;
}

void add_usage(JobStatus& status, const std::string& proc) {
  std::vector<pid_t> pids;
  for (const ProcessStatus& process : status.processes)
    pids.push_back(is_alive(process.state) ? process.pid : -1);
  const std::vector<ResourceUsage> usage = read_usage(pids, proc);
  for (std::size_t i = 0; i < pids.size(); ++i) {
    if (usage[i].processes > 0) status.processes[i].usage = usage[i];
  }
}

void add_metrics(JobStatus& status, const std::string& directory) {
  for (ProcessStatus& process : status.processes) {
    if (process.role == "server" && is_alive(process.state))
      process.metrics = read_server_metrics(directory + "/" + metrics_file_name(status.pod, process.rank));
  }
}

void add_last_lines(JobStatus& status) {
  for (ProcessStatus& process : status.processes)
    process.last_line = last_shown_line(read_tail(process.log, process.log_bytes));
}

std::string last_shown_line(std::string_view tail, std::size_t max) {
  while (!tail.empty()) {
    const std::size_t begin = tail.find_last_of("\n\r");
    const std::string line = shown(begin == tail.npos ? tail : tail.substr(begin + 1), max);
    if (!line.empty()) return line;
    tail = tail.substr(0, begin == tail.npos ? 0 : begin);
  }
  return {};
}

}  // namespace fleetrun::launcher
