#include "cli/launch_log.h"

#include <limits.h>
#include <poll.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "cli/render.h"
#include "runtime/base/terminal_text.h"
#include "runtime/base/text.h"
#include "runtime/language/translator.h"

namespace fleetrun::cli {
namespace {

using launcher::LogLevel;
using launcher::Plan;
using launcher::ProcessSpec;
using launcher::Report;

/// "2022-05-18 11:27:17,761", local time.
std::string time_stamp() {
  timeval now = {};
  ::gettimeofday(&now, nullptr);
  tm local = {};
  ::localtime_r(&now.tv_sec, &local);
  char date[32], text[48];
  ::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &local);
  std::snprintf(text, sizeof text, "%s,%03d", date, static_cast<int>(now.tv_usec / 1000));
  return text;
}

std::string pod_line(const char* what, const Plan& plan, const char* status) {
  return std::string(what) + " Pod: " + plan.pod_name + ", replicas " +
         std::to_string(plan.processes.size()) + ", status " + status;
}

/// Whether its flags are those of Paddle's documents, which show what is printed, too.
bool is_by_paddles_flags(const launcher::JobConfig& config) {
  constexpr std::string_view kFlags[] = {"server_num", "trainer_num", "servers",
                                         "trainers",   "devices",     "run_mode"};
  return config.compat_paddle || std::ranges::any_of(config.listing, [&](const launcher::ListedSetting& row) {
           return row.source == launcher::Source::flag &&
                  std::ranges::find(kFlags, row.key) != std::end(kFlags);
         });
}

std::string settings_block(const std::string& head, const launcher::JobConfig& config) {
  std::string block = head + "-----------  Configuration  ----------------------\n";
  for (const launcher::ListedSetting& setting : config.listing)
    block.append(head).append(setting.key).append(": ").append(printable(setting.value, 4000)).append("\n");
  return block.append(head).append("--------------------------------------------------\n");
}

}  // namespace

void LaunchLog::raw(const std::string& bytes) {
  const std::string text = text_for(fd_, bytes);
  // A pipe that poll() calls writable takes PIPE_BUF bytes without blocking.
  const std::size_t piece = patience_ ? PIPE_BUF : text.size();
  for (std::size_t sent = 0; sent < text.size();) {
    pollfd ready = {fd_, POLLOUT, 0};
    if (patience_ && ::poll(&ready, 1, static_cast<int>(patience_->count())) <= 0) return;
    const ssize_t count = ::write(fd_, text.data() + sent, std::min(piece, text.size() - sent));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

void LaunchLog::write(LogLevel level, const std::string& text) {
  if (!shows(level)) return;
  raw("LAUNCH " + std::string(to_string(level)) + " " + time_stamp() + " " + translated_lines(text) + "\n");
}

void LaunchLog::show_configuration(const launcher::JobConfig& config) {
  if (min_ <= LogLevel::info) {
    const std::string head = "LAUNCH INFO " + time_stamp() + " ";
    std::string block;
    if (min_ <= LogLevel::debug || is_by_paddles_flags(config)) block = settings_block(head, config);
    const launcher::NodeCount& nodes = config.rendezvous.nodes;
    block.append(head).append("Job: " + config.job_id + ", mode " + std::string(to_string(config.mode)) +
                              ", replicas " + std::to_string(nodes.max) + "[" + std::to_string(nodes.min) +
                              ":" + std::to_string(nodes.max) + "], elastic " +
                              (config.rendezvous.elastic ? "True" : "False") + "\n");
    raw(block);
  }
  for (const std::string& note : config.notes) warning(note);
}

void LaunchLog::show_start(const Plan& plan) {
  if (min_ <= LogLevel::info) {
    const std::string head = "LAUNCH INFO " + time_stamp() + " ";
    std::string block;
    block.append(head).append(pod_line("Run", plan, "ready")).append("\n");
    for (const ProcessSpec& process : plan.processes) {
      if (!process.cpus.empty())
        block.append(head).append("Bound " + process.name + " to " + binding_line(process)).append("\n");
    }
    raw(block);
  }
  for (const std::string& note : plan.notes) warning(note);
}

void LaunchLog::show_end(const Report& report, const Plan& plan, const std::string& last_lines) {
  if (!report.failed) {
    if (report.exit_status == 0)
      info("Pod completed");
    else
      error(report.cause);
    info("Exit code " + std::to_string(report.exit_status));
    return;
  }
  const ProcessSpec& process = plan.processes[*report.failed];
  const std::string log = plan.log_dir_shown + "/" + process.log_name;
  info("Pod failed");
  error("Container failed !!!\nContainer rank " + std::to_string(*report.failed) + " status failed cmd " +
        python_repr(process.argv) + " code " + std::to_string(report.shown_code) + " log " + log);
  error(report.cause + " (first failure; log " + log + ")");
  if (!last_lines.empty()) {
    const std::string dashes(25, '-');
    raw(dashes + " ERROR LOG DETAIL " + dashes + "\n" + terminal_text(last_lines, process.name + " | ") +
        (last_lines.ends_with('\n') ? "" : "\n"));
  }
  info("Exit code " + std::to_string(report.exit_status));
}

}  // namespace fleetrun::cli
