#include "launcher/status/event_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

#include "launcher/logs/log_files.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"

namespace fleetrun::launcher {

EventLog::EventLog(const Plan& plan, std::function<void(const std::string&)> warn)
    : plan_(plan),
      warn_(std::move(warn)),
      unwritten_(job_began_line(plan, ::getpid(), event_time_now())),
      events_(1) {}

void EventLog::on_event(const JobEvent& event) {
  unwritten_ += to_json_line(event, plan_, event_time_now());
  ++events_;
}

void EventLog::flush() noexcept {
  if (events_ == 0) return;
  try {
    write_out();
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void EventLog::write_out() {
  if (!file_) {
    const UniqueFd directory = open_pod_directory(plan_);
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK;
    file_.reset(open_own_at(directory.value(), "events.jsonl", flags, Readers::owner));
    check_errno(file_.value(), "open", "writing events.jsonl");
  }
  std::string text = broken_line_ ? "\n" : "";
  if (lost_ > 0) text += events_lost_line(lost_, event_time_now());
  text += unwritten_;
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(file_.value(), text.data() + sent, text.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = count == 0 ? ENOSPC : errno;
      const std::string_view rest = std::string_view(text).substr(sent);
      if (sent > 0) {
        broken_line_ = text[sent - 1] != '\n';
        lost_ = 0;
        events_ = static_cast<std::size_t>(std::count(rest.begin(), rest.end(), '\n'));
      }
      return fail(std::generic_category().message(error));
    }
    sent += static_cast<std::size_t>(count);
  }
  unwritten_.clear();
  events_ = lost_ = 0;
  broken_line_ = false;
}

void EventLog::fail(const std::string& why) {
  lost_ += events_;
  events_ = 0;
  unwritten_.clear();
  if (std::exchange(warned_, true)) return;
  warn_("events.jsonl in " + plan_.log_dir_shown + "/" + plan_.pod_name + " cannot be written: " + why +
        "; the job continues without it");
}

}  // namespace fleetrun::launcher
