// Three sources are shown until the job has ended: the processes' logs (by a child, which ends with the job
// or with this process), the LAUNCH lines from now on (of a detached job from its launch.log; of any other,
// whose LAUNCH lines are on its own terminal, the sentences that come with the events), and the end itself.
#include "cli/attach_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "cli/command_flags.h"
#include "cli/job_choice.h"
#include "cli/job_stream.h"
#include "launcher/logs/log_choice.h"
#include "launcher/logs/log_show.h"
#include "launcher/status/control_client.h"
#include "launcher/status/job_status_json.h"
#include "runtime/base/error.h"
#include "runtime/base/terminal_text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::cli {
namespace {

constexpr CommandFlag kAttachFlags[] = {
    {"all", 'a', "", "show the logs of all processes, not only the first trainer's"},
    {"lines", 'n', "N", "begin with the last N lines of each log; default: 10"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kAttachHelp = R"(usage: fleetrun attach [JOB] [--all] [--lines=N]

Shows a running job of yours until it ends, and exits with its exit status. JOB is a pod or a job id; without
it there has to be one job only. Ctrl-C leaves the job running.

)";

constexpr int kLost = 125, kLinesBefore = 10;
constexpr std::chrono::milliseconds kLook{250};  // between looks at launch.log
constexpr std::chrono::seconds kLastBreath{
    5};  // from the end of the job to that of its fleetrun and of its logs

/// The part of a growing file that has not been shown yet.
class Tail {
 public:
  explicit Tail(const std::string& path)
      : file_(path.empty() ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {
    if (file_) ::lseek(file_.value(), 0, SEEK_END);
  }
  explicit operator bool() const noexcept { return bool(file_); }
  void show(int output) {
    char bytes[16384];
    for (ssize_t count; file_ && (count = ::read(file_.value(), bytes, sizeof bytes)) > 0;)
      add({bytes, static_cast<std::size_t>(count)}, output);
  }

 private:
  void add(std::string_view bytes, int output) {
    if (::isatty(output) != 1) return write_bytes(output, bytes);
    std::string shown;
    text_.add(bytes, shown);
    text_.pause(shown);
    write_bytes(output, shown);
  }

  UniqueFd file_;
  TerminalText text_{TerminalText::Mark{}};
};

/// The reader has left: whom this process shows logs for, ends likewise.
void end_unread(int) {
  ::kill(::getppid(), SIGPIPE);
  ::_exit(1);
}

/// Shows logs as they grow, in a process of its own.
class LogShow {
 public:
  explicit LogShow(const launcher::LogSpec& spec) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, end_unread);
    try {
      launcher::show_logs(spec);
    } catch (const Error&) {
      ::_exit(1);  // there are no logs: nothing is shown
    }
    ::_exit(0);
  }
  ~LogShow() { end(std::chrono::milliseconds(0)); }
  LogShow(const LogShow&) = delete;
  LogShow& operator=(const LogShow&) = delete;

  /// Waits until all has been shown, for `patience` at most.
  void end(std::chrono::milliseconds patience) {
    if (pid_ <= 0) return;
    if (!wait_for_end(pid_, patience)) ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

launcher::LogSpec logs_to_show(const CommandArguments& words, const launcher::JobEntry& job,
                               const launcher::JobStatus& status) {
  launcher::LogSpec spec;
  spec.pod_directory = job.log_dir + "/" + job.pod;
  spec.lines = whole_number(words, "lines", 0).value_or(kLinesBefore);
  spec.follow = true;
  spec.output = STDOUT_FILENO;
  spec.colour = ::isatty(STDOUT_FILENO) == 1;
  if (words.has("all") || status.processes.empty()) return spec;
  const launcher::ProcessStatus* first = &status.processes.front();
  for (const launcher::ProcessStatus& process : status.processes) {
    if (process.role == "trainer" && process.rank == 0) first = &process;
  }
  spec.roles = {first->role};
  spec.ranks = {first->rank};
  return spec;
}

/// Looks on until the job has ended. Returns its exit status; nullopt when it has gone without saying it.
/// `signal` becomes the one that ended the looking on alone.
std::optional<int> look_on(launcher::ControlClient& events, Tail& launch_lines, int& signal) {
  const UniqueFd signals(open_signals());
  for (bool open = true; open; open = events.read_more()) {
    launch_lines.show(STDERR_FILENO);
    while (const auto line = events.next_line()) {
      const auto event = parse_streamed(*line);
      if (!event) continue;
      if (!launch_lines && !event->text.empty() && event->level != "DEBUG")
        write_text(STDERR_FILENO, event->text + "\n");
      if (event->exit_status) return event->exit_status;
    }
    const Wake wake =
        wait_for(events.descriptor(), signals.value(), launch_lines ? kLook : std::chrono::milliseconds(-1));
    if (wake.signal == 0 || wake.signal == SIGWINCH) continue;
    signal = wake.signal;
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

int run_attach_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("attach", arguments, kAttachFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kAttachHelp + describe_flags(kAttachFlags));
    return 0;
  }
  const launcher::JobEntry job = choose_job("attach", words.words, environment);
  launcher::ControlClient events(job);
  const auto status =
      launcher::job_status_from_json(launcher::status_in(events.ask(R"({"request":"attach"})")));
  Tail launch_lines(job.launch_log);
  LogShow logs(logs_to_show(words, job, status));
  int signal = 0;
  const std::optional<int> exit_status = look_on(events, launch_lines, signal);
  if (signal != 0) {
    write_text(STDERR_FILENO, name_of(job) + " goes on; fleetrun stop " + job.pod + " ends it\n");
    return 128 + signal;
  }
  wait_for_end(job.pid, kLastBreath);
  logs.end(kLastBreath);
  launch_lines.show(STDERR_FILENO);
  if (exit_status) return *exit_status;
  write_text(STDERR_FILENO,
             name_of(job) + " has gone without saying how it ended: its fleetrun was killed\n");
  return kLost;
}

}  // namespace fleetrun::cli
