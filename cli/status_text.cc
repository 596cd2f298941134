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

constexpr int kNarrow = 9, kMaxName = 24, kMaxState = 12;

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
  if (status.generation > 0)
    text += ", epoch " + std::to_string(status.generation) + " with " + std::to_string(status.hosts.size()) +
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
         padded(state_of(process), kMaxState) + right(std::to_string(process.attempt), 4) +
         right(cpu_share(status, before, index), 7) +
         right(usage ? short_bytes(static_cast<double>(usage->rss_bytes)) : "-", 8) +
         right(time_of(status, process), 8) + "  " + process.last_line.value_or("");
}

/// "950", "12.3k", "4.56M"
std::string short_count(double count) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  for (; count >= 1000 && unit + 1 < std::size(kUnits); ++unit) count /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit > 0 && count < 100 ? "%.1f%s" : "%.0f%s", count, kUnits[unit]);
  return text;
}

/// "850us", "4.5ms"
std::string short_latency(const launcher::ServerMetrics& metrics, std::string_view kind) {
  const launcher::ServerMetrics::Call* call = launcher::call_of(metrics, kind);
  const auto time = call ? static_cast<double>(launcher::latency_quantile(*call, 0.99)) : 0.0;
  if (time == 0) return "-";
  char text[32];
  if (time < 1e6)
    std::snprintf(text, sizeof text, "%.0fus", time / 1e3);
  else if (time < 1e9)
    std::snprintf(text, sizeof text, "%.1fms", time / 1e6);
  else
    std::snprintf(text, sizeof text, "%.1fs", time / 1e9);
  return text;
}

/// A parameter server's line: rows, keys and calls a second, times; since `before` where there is one.
std::string server_line(const ProcessStatus& process, const ProcessStatus* before, int name_width) {
  const launcher::ServerMetrics metrics = before && before->metrics
                                              ? launcher::metrics_between(*before->metrics, *process.metrics)
                                              : *process.metrics;
  std::uint64_t rows = 0, pulled = 0, pushed = 0, waiting = 0;
  for (const launcher::ServerMetrics::Table& table : metrics.tables) {
    rows += table.rows.value_or(0);
    pulled += table.pulled;
    pushed += table.pushed;
  }
  const auto rate = [&](std::uint64_t count) {
    return metrics.uptime_seconds > 0 ? short_count(static_cast<double>(count) / metrics.uptime_seconds)
                                      : "-";
  };
  const auto calls = [&](std::string_view kind) {
    const launcher::ServerMetrics::Call* call = launcher::call_of(metrics, kind);
    if (call) waiting += call->in_flight;
    return rate(call ? call->calls : 0);
  };
  const std::string pulls = calls("pull"), pushes = calls("push");
  return padded(printable(process.name), name_width) +
         right(short_count(static_cast<double>(rows)), kNarrow) + right(pulls, kNarrow) +
         right(rate(pulled), kNarrow) + right(short_latency(metrics, "pull"), kNarrow) +
         right(pushes, kNarrow) + right(rate(pushed), kNarrow) +
         right(short_latency(metrics, "push"), kNarrow) + right(std::to_string(waiting), kNarrow);
}

/// Lines about the parameter servers that have said something of themselves; none where there is none.
std::vector<std::string> server_lines(const JobStatus& status, const JobStatus* before, int name_width) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < status.processes.size(); ++i) {
    const ProcessStatus& process = status.processes[i];
    if (!process.metrics) continue;
    if (lines.empty()) {
      std::string line = padded("server", name_width);
      for (const char* word : {"rows", "pulls/s", "keys/s", "p99", "pushes/s", "keys/s", "p99", "now"})
        line += right(word, kNarrow);
      lines.push_back(line);
    }
    const ProcessStatus* earlier =
        before && i < before->processes.size() && before->processes[i].pid == process.pid
            ? &before->processes[i]
            : nullptr;
    lines.push_back(server_line(process, earlier, name_width));
  }
  return lines;
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
    name_width = std::max(name_width, std::min(static_cast<int>(process.name.size()), kMaxName));
  std::string text;
  const auto add = [&](const std::string& line) { text += cut_to_columns(line, size.columns) + "\n"; };
  add(heading(status));
  add(padded("process", name_width) + right("pid", kNarrow) + "  " + padded("state", kMaxState) +
      right("att", 4) + right("cpu", 7) + right("memory", 8) + right("time", 8) + "  last line");
  std::size_t shown = status.processes.size();
  const std::vector<std::string> servers = server_lines(status, before, name_width);
  const std::size_t fixed = 2 + (status.restarts.empty() ? 0 : 1) + servers.size();
  if (size.rows > 0 && shown + fixed > static_cast<std::size_t>(size.rows))
    shown = static_cast<std::size_t>(std::max(size.rows - static_cast<int>(fixed) - 1, 0));
  for (std::size_t i = 0; i < shown; ++i) add(process_line(status, before, i, name_width));
  if (shown < status.processes.size())
    add("and " + std::to_string(status.processes.size() - shown) + " more");
  for (const std::string& line : servers) add(line);
  if (!status.restarts.empty()) {
    const launcher::RestartStatus& last = status.restarts.back();
    add("restarts: " + std::to_string(status.restarts.size()) + ", the last because " +
        printable(last.process) + " " + (last.cause.empty() ? "failed" : printable(last.cause)) + " (" +
        printable(last.why) + ")");
  }
  return text;
}

}  // namespace fleetrun::cli
