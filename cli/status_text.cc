#include "cli/status_text.h"

#include <algorithm>
#include <cstdio>

#include "runtime/base/exit_reason.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

using launcher::JobPhase;
using launcher::JobStatus;
using launcher::ProcessState;
using launcher::ProcessStatus;

constexpr int kNarrow = 9, kMostName = 24, kMostState = 12;

std::string padded(std::string text, int width) {
  text.resize(std::max<std::size_t>(text.size(), static_cast<std::size_t>(width)), ' ');
  return text;
}

std::string right(const std::string& text, int width) {
  const auto size = static_cast<int>(text.size());
  return std::string(static_cast<std::size_t>(std::max(width - size, 0)), ' ') + text;
}

double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

const ProcessStatus* same_process(const JobStatus* status, const ProcessStatus& process, std::size_t index) {
  if (!status || index >= status->processes.size()) return nullptr;
  const ProcessStatus& other = status->processes[index];
  return other.pid == process.pid && other.usage ? &other : nullptr;
}

/// "87%" of a core.
std::string cpu_share(const JobStatus& status, const JobStatus* before, std::size_t index) {
  const ProcessStatus& process = status.processes[index];
  if (!process.usage) return "-";
  double used = process.usage->cpu_seconds, time = seconds(status.now - process.started_at);
  if (const ProcessStatus* earlier = same_process(before, process, index)) {
    used -= earlier->usage->cpu_seconds;
    time = seconds((status.now - status.began_at) - (before->now - before->began_at));
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.0f%%", time > 0 ? std::max(100 * used / time, 0.0) : 0.0);
  return text;
}

/// "running", "stopped" (by SIGSTOP), "exit 3", "SIGKILL"
std::string state_of(const ProcessStatus& process) {
  const bool ended = process.state == ProcessState::failed || process.state == ProcessState::ended;
  if (ended && process.exit)
    return process.exit->kind == ExitReason::Kind::exited ? "exit " + std::to_string(process.exit->code)
                                                          : signal_name(process.exit->code);
  if (process.usage && process.usage->state == 'T') return "stopped";
  return std::string(to_string(process.state));
}

std::string time_of(const JobStatus& status, const ProcessStatus& process) {
  if (process.starts == 0) return "-";
  return short_time(seconds(process.ended_at.value_or(status.now) - process.started_at));
}

std::string heading(const JobStatus& status) {
  std::string text = "job " + printable(status.job_id) + ", pod " + printable(status.pod) + ", " +
                     status.mode + ": " + std::string(to_string(status.phase));
  if (!status.phase_reason.empty()) text += " (" + printable(status.phase_reason) + ")";
  if (status.exit_status) text += ", exit status " + std::to_string(*status.exit_status);
  text += ", attempt " + std::to_string(status.attempt) + ", " +
          short_time(seconds(status.now - status.began_at));
  if (status.epoch > 0)
    text += ", epoch " + std::to_string(status.epoch) + " with " + std::to_string(status.hosts.size()) +
            (status.hosts.size() == 1 ? " host" : " hosts");
  if (!status.containment.empty()) text += ", held by " + status.containment;
  if (status.logs_truncated) text += ", logs truncated";
  return text;
}

std::string process_line(const JobStatus& status, const JobStatus* before, std::size_t index,
                         int name_width) {
  const ProcessStatus& process = status.processes[index];
  const auto& usage = process.usage;
  return padded(printable(process.name), name_width) +
         right(process.pid > 0 ? std::to_string(process.pid) : "-", kNarrow) + "  " +
         padded(state_of(process), kMostState) + right(std::to_string(process.attempt), 4) +
         right(cpu_share(status, before, index), 7) +
         right(usage ? short_bytes(static_cast<double>(usage->rss_bytes)) : "-", 8) +
         right(time_of(status, process), 8) + "  " + process.last_line.value_or("");
}

}  // namespace

std::string short_bytes(double bytes) {
  constexpr const char* kUnits[] = {"", "K", "M", "G", "T", "P"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit > 0 && bytes < 10 ? "%.1f%s" : "%.0f%s", bytes, kUnits[unit]);
  return text;
}

std::string short_time(double time) {
  const auto whole = static_cast<std::int64_t>(std::max(time, 0.0));
  const auto part = [](std::int64_t value) { return (value < 10 ? "0" : "") + std::to_string(value); };
  if (whole < 60) return std::to_string(whole) + "s";
  if (whole < 3600) return std::to_string(whole / 60) + "m" + part(whole % 60) + "s";
  if (whole < 86'400) return std::to_string(whole / 3600) + "h" + part(whole / 60 % 60) + "m";
  return std::to_string(whole / 86'400) + "d" + part(whole / 3600 % 24) + "h";
}

std::string cut_to_columns(std::string_view text, int columns) {
  std::size_t end = 0;
  for (int column = 0; column < columns && end < text.size(); ++column)
    end += std::max<std::size_t>(utf8_length(text.substr(end)), 1);
  return std::string(text.substr(0, end));
}

std::string status_table(const JobStatus& status, const JobStatus* before, TableSize size) {
  int name_width = static_cast<int>(std::string_view("process").size());
  for (const ProcessStatus& process : status.processes)
    name_width = std::max(name_width, std::min(static_cast<int>(process.name.size()), kMostName));
  std::string text;
  const auto add = [&](const std::string& line) { text += cut_to_columns(line, size.columns) + "\n"; };
  add(heading(status));
  add(padded("process", name_width) + right("pid", kNarrow) + "  " + padded("state", kMostState) +
      right("att", 4) + right("cpu", 7) + right("memory", 8) + right("time", 8) + "  last line");
  std::size_t shown = status.processes.size();
  const auto fixed = static_cast<std::size_t>(2 + (status.restarts.empty() ? 0 : 1));
  if (size.rows > 0 && shown + fixed > static_cast<std::size_t>(size.rows))
    shown = static_cast<std::size_t>(std::max(size.rows - static_cast<int>(fixed) - 1, 0));
  for (std::size_t i = 0; i < shown; ++i) add(process_line(status, before, i, name_width));
  if (shown < status.processes.size())
    add("and " + std::to_string(status.processes.size() - shown) + " more");
  if (!status.restarts.empty()) {
    const launcher::RestartStatus& last = status.restarts.back();
    add("restarts: " + std::to_string(status.restarts.size()) + ", the last because " +
        printable(last.process) + " " + (last.cause.empty() ? "failed" : printable(last.cause)) + " (" +
        printable(last.why) + ")");
  }
  return text;
}

}  // namespace fleetrun::cli
