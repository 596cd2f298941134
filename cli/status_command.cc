#include "cli/status_command.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <limits>

#include "cli/command_flags.h"
#include "cli/job_choice.h"
#include "cli/status_text.h"
#include "launcher/status/control_client.h"
#include "launcher/status/job_status_json.h"

namespace fleetrun::cli {
namespace {

constexpr CommandFlag kStatusFlags[] = {
    {"json", 0, "", "as one line of JSON, for programs"},
    {"stacks", 0, "",
     "what each process is doing: the stacks of its threads (those of other programs than Python by gdb)"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kStatusHelp = R"(usage: fleetrun status [JOB] [--json | --stacks]

Shows how a running job of yours is doing: its phase, its attempt, and for each process its pid, state, CPU,
memory and last line. JOB is a pod or a job id; without it there has to be one job only.

)";

}  // namespace

int run_status_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("status", arguments, kStatusFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kStatusHelp + describe_flags(kStatusFlags));
    return 0;
  }
  const launcher::JobEntry job = choose_job("status", words.words, environment);
  if (words.has("stacks")) {
    write_text(STDOUT_FILENO, launcher::stacks_of(job));
    return 0;
  }
  const std::string json = launcher::status_in(launcher::ControlClient(job).ask(R"({"request":"status"})"));
  if (words.has("json")) {
    write_text(STDOUT_FILENO, json + "\n");
    return 0;
  }
  winsize window = {};
  const bool terminal = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  const TableSize size{terminal ? window.ws_col : std::numeric_limits<int>::max(), 0};
  write_text(STDOUT_FILENO, status_table(launcher::job_status_from_json(json), nullptr, size));
  return 0;
}

}  // namespace fleetrun::cli
