#include "launcher/host/event_command.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "launcher/host/helper_child.h"
#include "runtime/base/close_from.h"
#include "runtime/base/error.h"
#include "runtime/base/exit_reason.h"
#include "runtime/base/json_text.h"
#include "runtime/base/process_end.h"
#include "runtime/base/quiet_thread.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kLongestRun{10}, kLongestEnd{10};
constexpr std::size_t kLongestQueue = 64;

const char* name_of(JobNotice::Kind kind) {
  constexpr const char* kNames[] = {"start", "failure", "restart", "end"};
  return kNames[static_cast<int>(kind)];
}

Json facts_of(const JobNotice& notice, const EventCommandSettings& settings) {
  Json facts = {{"event", name_of(notice.kind)}, {"job", settings.job_id}, {"log_dir", settings.log_dir}};
  const auto add = [&facts](const char* name, const std::string& text) {
    if (!text.empty()) facts[name] = text;
  };
  add("process", notice.process);
  add("host", notice.host);
  add("cause", notice.cause);
  add("why", notice.why);
  if (notice.attempt) facts["attempt"] = *notice.attempt;
  if (notice.backoff_ms) facts["backoff_ms"] = *notice.backoff_ms;
  if (notice.exit_status) facts["exit_status"] = *notice.exit_status;
  return facts;
}

/// Which variable has a fact of the line.
constexpr std::pair<const char*, const char*> kVariables[] = {
    {"event", "FLEETRUN_EVENT"},
    {"job", "FLEETRUN_EVENT_JOB"},
    {"log_dir", "FLEETRUN_EVENT_LOG_DIR"},
    {"process", "FLEETRUN_EVENT_PROCESS"},
    {"host", "FLEETRUN_EVENT_HOST"},
    {"cause", "FLEETRUN_EVENT_CAUSE"},
    {"why", "FLEETRUN_EVENT_WHY"},
    {"attempt", "FLEETRUN_EVENT_ATTEMPT"},
    {"backoff_ms", "FLEETRUN_EVENT_BACKOFF_MS"},
    {"exit_status", "FLEETRUN_EVENT_EXIT_STATUS"},
};

std::vector<std::string> environment_of(Environ environment, const Json& facts) {
  for (const auto& [name, variable] : kVariables) {
    if (!facts.contains(name)) {
      environment.erase(variable);  // of an outer job, whose command started this one
      continue;
    }
    const Json& value = facts.at(name);
    std::string text = value.is_string() ? value.get<std::string>() : json_text(value);
    std::erase(text, '\0');
    environment.set(variable, std::move(text));
  }
  return environment.entries();
}

std::string line_of(const Json& facts) {
  Json line = {{"schema", 1}};
  line.update(facts);
  return json_text(line) + "\n";
}

}  // namespace

class EventCommand::Runner {
 public:
  explicit Runner(EventCommandSettings settings) : settings_(std::move(settings)) {}
  ~Runner() { end(Clock::now()); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void tell(JobNotice notice) {
    const std::lock_guard lock(mutex_);
    if (over_ || queue_.size() >= kLongestQueue) return;
    queue_.push_back(std::move(notice));
    changed_.notify_all();
  }

  void begin() {
    if (thread_.joinable()) return;
    wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    thread_ = quiet_thread([this] { run(); });
  }

  void finish(Clock::time_point deadline) {
    if (has_notices()) begin();
    end(deadline);
  }

  void end(Clock::time_point deadline) {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      deadline_ = std::min(deadline_, deadline);
      changed_.notify_all();
      if (wake_) ::eventfd_write(wake_.value(), 1);
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  bool has_notices() {
    const std::lock_guard lock(mutex_);
    return !queue_.empty();
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return over_ || !queue_.empty(); });
      if (queue_.empty() || Clock::now() >= deadline_) return;
      const JobNotice notice = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      run_one(notice);
      lock.lock();
    }
  }

  void run_one(const JobNotice& notice) noexcept {
    std::string failure;
    try {
      failure = failure_of(notice);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (failure.empty() || std::exchange(warned_, true)) return;
    settings_.warn("the command of --on_event " + failure + " (event: " + name_of(notice.kind) +
                   "); the job does not depend on it, and further failures of it are not told");
  }

  /// Empty: it ended with 0.
  std::string failure_of(const JobNotice& notice) {
    const Json facts = facts_of(notice, settings_);
    const UniqueFd input = memory_file(line_of(facts));  // nobody waits for who reads it
    const std::vector<std::string> environment = environment_of(settings_.environment, facts);
    const std::vector<std::string> argv = {"/bin/bash", "-c", settings_.command};
    const std::vector<char*> arguments = pointers(argv), variables = pointers(environment);
    const pid_t parent = ::getpid();
    const pid_t pid = check_errno(::fork(), "fork", "running --on_event");
    if (pid == 0) {
      settle_child(parent);
      ::dup2(input.value(), STDIN_FILENO);
      ::dup2(STDERR_FILENO, STDOUT_FILENO);
      close_from(3);
      ::execve(arguments[0], arguments.data(), variables.data());
      ::_exit(127);
    }
    return judge(pid);
  }

  std::string judge(pid_t pid) {
    const UniqueFd ended = watch_end(pid);
    const bool in_time = ended && wait_for(ended.value(), Clock::now() + kLongestRun);
    ::kill(-pid, SIGKILL);  // what it has left in its session, too
    ::kill(pid, SIGKILL);   // should it not have one yet
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!in_time) return "did not end in time and was killed";
    const ExitReason reason = exit_reason_from(status);
    return reason.ok() ? "" : to_string(reason);
  }

  /// Whether `process`, of watch_end(), has ended before `limit` and before the deadline of the end.
  bool wait_for(int process, Clock::time_point limit) {
    for (;;) {
      Clock::time_point until = limit;
      {
        const std::lock_guard lock(mutex_);
        until = std::min(until, deadline_);
        eventfd_t ignored = 0;
        ::eventfd_read(wake_.value(), &ignored);
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      pollfd waits[] = {{process, POLLIN, 0}, {wake_.value(), POLLIN, 0}};
      const int count = ::poll(waits, 2, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
      if (count > 0 && waits[0].revents != 0) return true;
      if (count == 0) return false;
    }
  }

  const EventCommandSettings settings_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<JobNotice> queue_;
  bool over_ = false, warned_ = false;
  Clock::time_point deadline_ = Clock::time_point::max();
  UniqueFd wake_;  // tells of a new deadline who waits for a process
  std::thread thread_;
};

EventCommand::EventCommand(EventCommandSettings settings)
    : runner_(std::make_unique<Runner>(std::move(settings))) {}

EventCommand::~EventCommand() = default;

void EventCommand::tell(JobNotice notice) {
  runner_->tell(std::move(notice));
}

void EventCommand::begin() {
  runner_->begin();
}

void EventCommand::finish() {
  runner_->finish(Clock::now() + kLongestEnd);
}

std::unique_ptr<EventCommand> event_command(EventCommandSettings settings) {
  if (settings.command.empty()) return nullptr;
  return std::make_unique<EventCommand>(std::move(settings));
}

}  // namespace fleetrun::launcher
