// Of each process the newest attempt that it has a log of, unless others are asked for. Without `follow` one
// process after the other; with it all as they grow, later attempts too.
#include "launcher/logs/log_show.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "launcher/logs/log_source.h"
#include "launcher/logs/log_view.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kLookAgain{250};  // for new attempts and the job's end
constexpr std::size_t kMaxLookedBack = std::size_t{64} << 20;

using Process = std::pair<std::string, int>;  // role and rank

bool is_wanted(const FoundLog& log, const LogSpec& spec) {
  const auto has = [](const auto& list, const auto& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  return has(spec.roles, log.role) && has(spec.ranks, log.rank) &&
         (!spec.attempt || *spec.attempt == log.attempt);
}

}  // namespace

std::map<Process, std::vector<FoundLog>> wanted_logs(const LogSpec& spec) {
  std::map<Process, std::vector<FoundLog>> wanted;
  for (FoundLog& log : list_logs(spec.pod_directory)) {
    if (!is_wanted(log, spec)) continue;
    std::vector<FoundLog>& of_process = wanted[{log.role, log.rank}];
    if (!spec.all_attempts) of_process.clear();
    of_process.push_back(std::move(log));
  }
  return wanted;
}

namespace {

class LogShow {
 public:
  explicit LogShow(LogSpec spec) : spec_(std::move(spec)), again_(loop_) {
    logs_ = wanted_logs(spec_);
    const bool alone = logs_.size() == 1;
    for (const auto& [process, logs] : logs_) {
      indices_[process] = viewed_.size();
      viewed_.push_back({process.first + " " + std::to_string(process.second), Showing::always});
    }
    settings_ = {
        .output = spec_.output, .raw = alone, .colour = spec_.colour && !alone, .waits_for_ever = true};
  }

  bool empty() const { return logs_.empty(); }

  void show() {
    for (const auto& [process, logs] : logs_) {
      view_ = view_logs(loop_, viewed_, settings_);
      attach(process, logs);
      view_->drain([this] { loop_.stop(); });
      loop_.restart();
      loop_.run();
      check_output();
    }
  }

  void follow() {
    view_ = view_logs(loop_, viewed_, settings_);
    for (const auto& [process, logs] : logs_) attach(process, logs);
    look_again();
    loop_.run();
    check_output();
  }

 private:
  /// A reader that left (EPIPE), or whose terminal closed (EIO), has seen what it wanted.
  void check_output() const {
    const int problem = view_->problem();
    if (problem == 0 || problem == EPIPE || problem == EIO) return;
    throw Error(ErrorKind::host,
                "standard output cannot be written: " + std::generic_category().message(problem));
  }

  void attach(const Process& process, const std::vector<FoundLog>& logs) {
    const std::size_t index = indices_[process];
    for (const FoundLog& log : logs) {
      const bool newest = &log == &logs.back();
      for (const std::string& path : log.paths) {
        const bool cut = spec_.lines && last_attempt_.find(process) == last_attempt_.end();
        if (cut && (!newest || path != log.paths.back())) continue;
        const off_t start =
            cut ? start_of_last_lines(path, static_cast<std::size_t>(*spec_.lines), kMaxLookedBack) : 0;
        view_->attach(index, path, start);
      }
    }
    last_attempt_[process] = logs.back().attempt;
  }

  void look_again() {
    const bool over = job_is_over(spec_.pod_directory);  // before the last look for logs
    LogSpec later = spec_;
    later.all_attempts = true;
    for (auto& [process, logs] : wanted_logs(later)) {
      const auto last = last_attempt_.find(process);
      if (last == last_attempt_.end()) continue;
      std::erase_if(logs, [&](const FoundLog& log) { return log.attempt <= last->second; });
      if (!logs.empty()) attach(process, logs);
    }
    if (over) {
      view_->drain([this] { loop_.stop(); });
      return;
    }
    again_.expires_after(kLookAgain);
    again_.async_wait([this](const auto& error) {
      if (!error) look_again();
    });
  }

  LogSpec spec_;
  std::map<Process, std::vector<FoundLog>> logs_;
  std::map<Process, std::size_t> indices_;
  std::map<Process, int> last_attempt_;
  std::vector<ViewedProcess> viewed_;
  ViewSettings settings_;
  asio::io_context loop_{1};
  asio::steady_timer again_;
  std::unique_ptr<LogView> view_;
};

}  // namespace

void show_logs(LogSpec spec) {
  const bool follow = spec.follow;
  const std::string where = printable(spec.pod_directory);
  LogShow shown(std::move(spec));
  if (shown.empty())
    throw Error(ErrorKind::host, "there is no log of that role, rank or attempt in " + where);
  if (follow)
    shown.follow();
  else
    shown.show();
}

}  // namespace fleetrun::launcher
