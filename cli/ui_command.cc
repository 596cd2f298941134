#include "cli/ui_command.h"

#include <unistd.h>

#include <optional>

#include "cli/browser_page.h"
#include "cli/command_flags.h"
#include "cli/job_choice.h"
#include "cli/plot_command.h"
#include "cli/ps_command.h"
#include "launcher/host/run_directory.h"
#include "launcher/ui/listener.h"
#include "launcher/ui/serve.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

constexpr CommandFlag kUiFlags[] = {
    {"port", 'p', "N", "listen on this port; default: any free one"},
    {"host", 0, "ADDRESS", "listen at this address of this host; default: 127.0.0.1, for this host alone"},
    {"job", 'j', "JOB", "show this job alone: a pod or a job id"},
    {"open", 'o', "", "open the page in a browser: $BROWSER, or the desktop's"},
    {"log_dir", 0, "DIR", "where the logs of ended jobs are; default: log, or PADDLE_LOG_DIR"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kUiHelp =
    R"(usage: fleetrun ui [--open] [--port N] [--host ADDRESS] [--job JOB] [--log_dir DIR]

Shows your jobs that run on this host, and those that have ended and left logs in DIR, as a page of a browser:
processes, logs, curves, parameter servers, and how a job ended; a job can be stopped, signalled and restarted
there. Prints the page's address. The token in it is a password: who has it can end your jobs. Ctrl-C ends it.

From another machine: ssh -L PORT:127.0.0.1:PORT HOST fleetrun ui --port=PORT

)";

std::uint16_t read_port(const CommandArguments& words) {
  const auto port = whole_number(words, "port", 0);
  if (port.value_or(0) > 65'535)
    throw Error(ErrorKind::usage, "--port is " + std::to_string(*port) + ": a port is at most 65535");
  return static_cast<std::uint16_t>(port.value_or(0));
}

}  // namespace

launcher::UiSettings ui_settings(const Environ& environment) {
  return {
      .run_directories = launcher::run_directories(environment, ::geteuid()),
      .log_dir = {},
      .job = {},
      .print_servers =
          [environment](const launcher::JobEntry& job) {
            run_ps_command({"--job=" + job.pod, "stat", "--json"}, environment);
          },
      .print_curves =
          [environment](const std::vector<std::string>& logs) {
            std::vector<std::string> plot{"--json"};
            plot.insert(plot.end(), logs.begin(), logs.end());
            run_plot_command(plot, environment);
          },
  };
}

int run_ui_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("ui", arguments, kUiFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kUiHelp + describe_flags(kUiFlags));
    return 0;
  }
  if (!words.words.empty())
    throw Error(ErrorKind::usage, "fleetrun ui takes no " + printable(words.words.front()),
                "--job=" + printable(words.words.front()) + " shows one job");
  launcher::UiListener listener =
      launcher::listen_for_ui({words.value("host").value_or("127.0.0.1"), read_port(words)}, "--host");
  const launcher::UiGate gate(listener.hosts, listener.port);
  if (!listener.is_local) write_text(STDERR_FILENO, std::string(kPlainText) + "\n");
  launcher::UiSettings settings = ui_settings(environment);
  const std::string from_environment = environment.value_or("PADDLE_LOG_DIR", "");
  settings.log_dir = words.value("log_dir").value_or(from_environment.empty() ? "log" : from_environment);
  settings.job = words.value("job");
  std::optional<BrowserPage> opened;
  launcher::run_ui(std::move(listener.socket), gate, std::move(settings), [&] {
    write_text(STDOUT_FILENO, gate.url() + "\n");
    if (!words.has("open")) return;
    try {
      opened.emplace(gate.url(), environment);
    } catch (const Error& error) {
      write_text(STDERR_FILENO, std::string(error.what()) + "; " + error.hint() + "\n");
    }
  });
  return 0;
}

}  // namespace fleetrun::cli
