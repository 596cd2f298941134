// fleetrun: reads its command line, does what it says, and is the one place that catches errors.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/launch.h"
#include "cli/options.h"
#include "cli/remote_launch.h"
#include "cli/torchrun_command.h"
#include "launcher/config/job_file_roles.h"
#include "launcher/config/job_schema.h"
#include "launcher/config/make_job_config.h"
#include "launcher/config/read_job_file.h"
#include "launcher/host/run_check.h"
#include "launcher/model/job_config.h"
#include "launcher/model/program.h"
#include "launcher/spawn/pid_one.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/language/translator.h"

namespace {

using namespace fleetrun;

constexpr int kRefused = 125;

/// Closed standard descriptors would be taken by the first files opened; a closed pipe, or a file that may
/// not grow (ulimit -f), is an error code, not a signal. The processes of a job have their signals set back.
void settle_process() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1) (void)!::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGTTOU,
           SIG_IGN);  // in the background of a terminal with `stty tostop`, too, fleetrun goes on watching
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

int run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  constexpr std::string_view kCompletion = "--completion=";
  if (arguments.size() == 1 && arguments[0].starts_with(kCompletion))
    return cli::print(cli::completion_script(std::string_view(arguments[0]).substr(kCompletion.size())));
  if (argc > 0 && cli::is_torchrun(argv[0]))
    return cli::run_as_torchrun(argv[0], arguments, Environ::of_process());
  if (const cli::Command* command = cli::find_command(arguments)) {
    if (command->kind == cli::Command::Kind::shows) ::signal(SIGPIPE, SIG_DFL);
    return command->run({arguments.begin() + 1, arguments.end()}, Environ::of_process());
  }
  if (arguments.size() == 1 && arguments[0] == launcher::kRunCheckProcess)
    return launcher::run_check_process(Environ::of_process());
  const cli::CommandLine line = cli::parse_command_line(arguments);
  if (line.help) return cli::run_help_command({}, Environ::of_process());
  if (line.version) return cli::run_version_command({}, Environ::of_process());
  if (line.job_schema) return cli::print(launcher::job_schema());
  const Environ environment = Environ::of_process();
  launcher::Options options = line.options;
  if (options.script && launcher::is_job_file(*options.script))
    launcher::apply_job_file(launcher::read_job_file(*options.script), options);
  const launcher::JobConfig config = launcher::make_job_config(options, environment);
  if (config.host_list.given()) return cli::launch_on_hosts(line.options, config, environment);
  return cli::launch(config, environment);
}

}  // namespace

int main(int argc, char** argv) {
  fleetrun::launcher::leave_pid_one(argv);
  settle_process();
  // Who started an agent reads what it says, and translates it there.
  if (argc < 2 || std::string_view(argv[1]) != "agent") fleetrun::speak(language_of(Environ::of_process()));
  int status = kRefused;
  // Put together while there is memory.
  const std::string no_memory = translated_lines(
      "fleetrun: error: there is no memory left\n"
      "  hint: raise the limit (ulimit -v, or that of the container), or start fewer processes\n");
  try {
    status = run(argc, argv);
  } catch (const Error& error) {
    cli::refuse(error, kRefused);
  } catch (const std::bad_alloc&) {
    (void)!::write(STDERR_FILENO, no_memory.data(), no_memory.size());
    ::_exit(kRefused);
  } catch (const std::exception& error) {
    cli::refuse(Error(ErrorKind::host, error.what()), kRefused);
  }
  ::_exit(status);  // everything is written by system calls: nothing is left to flush
}
