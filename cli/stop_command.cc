#include "cli/stop_command.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "cli/command_flags.h"
#include "cli/job_choice.h"
#include "cli/job_stream.h"
#include "launcher/model/signal_map.h"
#include "launcher/status/control_client.h"
#include "launcher/status/control_request.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::cli {
namespace {

constexpr CommandFlag kStopFlags[] = {
    {"now", 0, "", "kill it at once, without asking"},
    {"grace", 0, "S", "kill it after this many seconds at most; default: each role's --grace"},
    {"signal", 0, "SIGNAL", "send this to every process, before the stop signal"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kStopHelp = R"(usage: fleetrun stop [JOB] [--now] [--grace S] [--signal SIGNAL]

Ends a running job of yours as Ctrl-C would, and waits until it has ended. JOB is a pod or a job id; without
it there has to be one job only. Ctrl-C leaves the waiting, not the stop.

)";

constexpr std::chrono::seconds kLastBreath{5};  // from the end of the job to that of its fleetrun

launcher::StopRequest read_request(const CommandArguments& words) {
  launcher::StopRequest request;
  request.now = words.has("now");
  if (const auto text = words.value("grace")) {
    const auto grace = parse_duration_ms(*text);
    if (!grace)
      throw Error(ErrorKind::usage, "--grace is '" + printable(*text) + "': a number of seconds is needed");
    request.grace = std::chrono::milliseconds(*grace);
  }
  if (const auto text = words.value("signal")) {
    const auto number = launcher::parse_signal(*text);
    if (!number)
      throw Error(ErrorKind::usage, "--signal is '" + printable(*text) + "': a signal is needed",
                  "for example --signal=USR1");
    request.signal = *number;
  }
  return request;
}

}  // namespace

int run_stop_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("stop", arguments, kStopFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kStopHelp + describe_flags(kStopFlags));
    return 0;
  }
  const launcher::StopRequest request = read_request(words);
  const launcher::JobEntry job = choose_job("stop", words.words, environment);
  launcher::ControlClient events(job);
  events.ask(R"({"request":"attach"})");
  launcher::ControlClient(job).ask(launcher::to_json(request));
  const UniqueFd signals(open_signals());
  for (bool open = true; open; open = events.read_more()) {
    while (const auto line = events.next_line()) {
      const auto event = parse_streamed(*line);
      if (!event) continue;
      if (event->type == "stop_began" || event->type == "grace_elapsed" || event->type == "unkillable")
        write_text(STDERR_FILENO, event->text.substr(0, event->text.find("; Ctrl-C")) + "\n");
      if (!event->exit_status) continue;
      wait_for_end(job.pid, kLastBreath);
      write_text(STDOUT_FILENO,
                 name_of(job) + " has ended with exit status " + std::to_string(*event->exit_status) + "\n");
      return 0;
    }
    const Wake wake = wait_for(events.descriptor(), signals.value(), std::chrono::milliseconds(-1));
    if (wake.signal == 0 || wake.signal == SIGWINCH) continue;
    write_text(STDERR_FILENO, name_of(job) + " is still being stopped\n");
    return 128 + wake.signal;
  }
  write_text(STDOUT_FILENO, name_of(job) + " has ended\n");
  return 0;
}

}  // namespace fleetrun::cli
