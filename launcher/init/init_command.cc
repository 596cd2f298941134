// Two habits, by the name that it is called by:
//
//   tini        the command is in a process group of its own, the foreground one of its terminal; signals
//               that the hardware raises are left alone, and dispositions stay as they were inherited
//   dumb-init   the command is in a session of its own and has the terminal; stop signals of the terminal
//               also stop this program; when the command ends, its session gets SIGTERM
#include "launcher/init/init_command.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

class CommandInit {
 public:
  explicit CommandInit(const InitOptions& options) : options_(options) {}

  int run() {
    take_signals();
    if (options_.parent_death_signal != 0) ::prctl(PR_SET_PDEATHSIG, options_.parent_death_signal);
    if (options_.subreaper && ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
      warn(std::string("it cannot become a subreaper: ") + ::strerror(errno));
    warn_unless_reaper();
    if (is_dumb_init() && options_.signal_group) leave_terminal();
    leave_directory();
    child_ = ::fork();
    if (child_ == 0) become_command();
    if (child_ == -1) {
      say(options_, "error: fork: " + std::string(::strerror(errno)));
      return 1;
    }
    debug("Child spawned with PID " + std::to_string(child_) + ".");
    for (;;) {
      int number = 0;
      if (::sigwait(&awaited_, &number) != 0) continue;
      if (const auto status = on_signal(number)) return *status;
    }
  }

 private:
  bool is_dumb_init() const { return options_.dialect == InitDialect::dumb_init; }

  static void say(const InitOptions& options, const std::string& text) {
    const std::string line =
        (options.dialect == InitDialect::dumb_init ? "[dumb-init] " : "fleetrun-init: ") + text + "\n";
    (void)!::write(STDERR_FILENO, line.data(), line.size());
  }
  void warn(const std::string& text) const {
    if (options_.verbosity > 0) say(options_, (is_dumb_init() ? "" : "warning: ") + text);
  }
  void debug(const std::string& text) const {
    if (options_.verbosity > 1) say(options_, text);
  }

  /// Everything is blocked, and what is waited for is taken from the queue one by one.
  void take_signals() {
    ::sigfillset(&awaited_);
    struct sigaction action = {};
    if (is_dumb_init()) {
      action.sa_handler = [](int) {};  // what is ignored is not queued; the command gets the default
      for (int number = 1; number <= kLastPlainSignal; ++number) ::sigaction(number, &action, nullptr);
    } else {
      for (const int number : {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGABRT, SIGTRAP, SIGSYS, SIGTTIN, SIGTTOU})
        ::sigdelset(&awaited_, number);
      // Not in the foreground any more, it may still write to the terminal.
      action.sa_handler = SIG_IGN;
      ::sigaction(SIGTTIN, &action, &terminal_input_);
      ::sigaction(SIGTTOU, &action, &terminal_output_);
      action.sa_handler = SIG_DFL;  // ignored, it would keep exit statuses from us
      ::sigaction(SIGCHLD, &action, &child_ended_);
    }
    ::sigprocmask(SIG_SETMASK, &awaited_, &inherited_);
  }

  void warn_unless_reaper() const {
    int subreaper = 0;
    if (is_dumb_init() || ::getpid() == 1) return;
    if (::prctl(PR_GET_CHILD_SUBREAPER, &subreaper) != 0 || subreaper == 1) return;
    warn("it is neither pid 1 nor a subreaper, so zombie reaping won't work; use -s or set TINI_SUBREAPER");
  }

  /// The terminal is for the command's session. Its last leader gets SIGHUP and SIGCONT for leaving it.
  void leave_terminal() {
    if (::ioctl(STDIN_FILENO, TIOCNOTTY) != 0) {
      debug(std::string("No terminal to leave: ") + ::strerror(errno) + ".");
      return;
    }
    hand_off_ = ::getsid(0) == ::getpid();
  }

  /// So that no file system is kept busy; the command starts where this program was started.
  void leave_directory() {
    if (!is_dumb_init()) return;
    directory_.reset(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (directory_) (void)!::chdir("/");
  }

  [[noreturn]] void become_command() {
    if (directory_) (void)!::fchdir(directory_.value());
    if (is_dumb_init()) {
      ::sigset_t all;
      ::sigfillset(&all);
      ::sigprocmask(SIG_UNBLOCK, &all, nullptr);
      if (options_.signal_group) {
        ::setsid();
        ::ioctl(STDIN_FILENO, TIOCSCTTY, 0);
        debug("setsid complete.");
      }
    } else {
      ::setpgid(0, 0);
      ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
      ::sigaction(SIGTTIN, &terminal_input_, nullptr);
      ::sigaction(SIGTTOU, &terminal_output_, nullptr);
      ::sigaction(SIGCHLD, &child_ended_, nullptr);
      ::sigprocmask(SIG_SETMASK, &inherited_, nullptr);
    }
    std::vector<char*> argv;
    for (const std::string& word : options_.command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    const int error = errno;
    say(options_, options_.command[0] + ": " + ::strerror(error));
    ::_exit(is_dumb_init() ? 2 : error == ENOENT ? 127 : error == EACCES ? 126 : 1);
  }

  /// The exit status, when it is over.
  std::optional<int> on_signal(int number) {
    debug("Received signal " + std::to_string(number) + ".");
    if (is_handed_off(number)) {
      debug("Ignoring tty hand-off signal " + std::to_string(number) + ".");
      return std::nullopt;
    }
    if (number == SIGCHLD) return reap();
    forward(number);
    if (is_dumb_init() && (number == SIGTSTP || number == SIGTTIN || number == SIGTTOU))
      ::kill(::getpid(), SIGSTOP);
    return std::nullopt;
  }

  bool is_handed_off(int number) {
    if (!hand_off_ || (number != SIGHUP && number != SIGCONT)) return false;
    bool& seen = number == SIGHUP ? hang_up_seen_ : continue_seen_;
    return !std::exchange(seen, true);
  }

  void forward(int number) {
    int sent = number;
    if (number <= kLastPlainSignal && options_.rewrite[static_cast<std::size_t>(number)] != kAsItCame)
      sent = options_.rewrite[static_cast<std::size_t>(number)];
    if (sent == 0) {
      debug("Not forwarding signal " + std::to_string(number) + " (ignored).");
      return;
    }
    // A command that was just forked may not have its group yet.
    if (!options_.signal_group || (::kill(-child_, sent) != 0 && !ended_)) ::kill(child_, sent);
    debug("Forwarded signal " + std::to_string(sent) + " to children.");
  }

  std::optional<int> reap() {
    std::optional<int> result;
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      debug("A child with PID " + std::to_string(pid) +
            (WIFEXITED(status) ? " exited with exit status " + std::to_string(code)
                               : " was terminated by signal " + std::to_string(code - 128)) +
            ".");
      if (pid == child_)
        result = code;
      else if (options_.warn_reaped)
        warn("Reaped zombie process with pid=" + std::to_string(pid));
    }
    if (!result) return result;
    ended_ = true;
    if (is_dumb_init()) forward(SIGTERM);
    debug("Child exited with status " + std::to_string(*result) + ". Goodbye.");
    return options_.success[static_cast<std::size_t>(*result) % 256] ? 0 : *result;
  }

  const InitOptions& options_;
  ::sigset_t awaited_ = {}, inherited_ = {};
  struct sigaction terminal_input_ = {}, terminal_output_ = {}, child_ended_ = {};
  UniqueFd directory_;
  pid_t child_ = -1;
  bool ended_ = false, hand_off_ = false, hang_up_seen_ = false, continue_seen_ = false;
};

}  // namespace

int run_init_command(const InitOptions& options) {
  return CommandInit(options).run();
}

}  // namespace fleetrun::launcher
