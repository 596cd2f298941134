// fleetrun: the stages of a launch in their order (options, configuration, program, host, plan, run, report),
// the one place that catches errors, and the exit status.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <climits>
#include <exception>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/launch_log.h"
#include "cli/options.h"
#include "cli/render.h"
#include "launcher/host.h"
#include "launcher/log_choice.h"
#include "launcher/log_files.h"
#include "launcher/plan_json.h"
#include "launcher/program.h"
#include "launcher/python_directory.h"
#include "launcher/run_check.h"
#include "launcher/supervisor.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/version.h"

namespace {

using namespace fleetrun;
using cli::LaunchLog;

constexpr int kRefused = 125;
constexpr std::size_t kTailBytes = 3000;
constexpr std::chrono::milliseconds kPatience{
    200};  // with a terminal that takes no LAUNCH lines while the job runs

/// Tells the user about the milestones of a job.
class Narrator final : public launcher::JobListener {
 public:
  Narrator(LaunchLog& log, const launcher::Plan& plan) : log_(log), plan_(plan) {}
  void on_contained(const std::string& level) override { log_.debug("containment " + level); }
  void on_running(std::size_t processes) override {
    log_.info("Watching Pod: " + plan_.pod_name + ", replicas " + std::to_string(processes) +
              ", status running");
  }
  void on_warning(const std::string& text) override { log_.warning(text); }
  void on_signal(int number, bool again) override {
    log_.info(again ? "Force quit" : "Terminating with signal " + std::to_string(number));
  }

 private:
  LaunchLog& log_;
  const launcher::Plan& plan_;
};

/// Closed standard descriptors would be taken by the first files opened; a closed pipe is an error code, not
/// a signal.
void settle_process() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1) (void)!::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Every process of the job costs fleetrun a log and a port: it takes as many descriptors as it may. Returns
/// the limit that it had, which is the processes'.
std::uint64_t raise_open_files() {
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  const rlim_t inherited = files.rlim_cur;
  files.rlim_cur = files.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &files) == 0 ? inherited : 0;
}

std::string own_directory() {
  char path[PATH_MAX];
  const ssize_t length = check_errno(static_cast<int>(::readlink("/proc/self/exe", path, sizeof path)),
                                     "readlink", "finding fleetrun");
  return launcher::directory_of(std::string(path, static_cast<std::size_t>(length)));
}

int print(const std::string& text) {
  LaunchLog(STDOUT_FILENO, launcher::LogLevel::info).raw(text);
  return 0;
}

int refuse(const Error& error, int status) {
  LaunchLog(STDERR_FILENO, launcher::LogLevel::info).raw(render(error, "fleetrun") + "\n");
  return status;
}

int run_plan(const launcher::JobConfig& config, const launcher::Plan& plan,
             const launcher::PythonDirectory& python, const launcher::Program& program,
             launcher::PortLeases& leases, launcher::RunSettings settings) {
  settings.init.setup.pod_name = plan.pod_name;
  settings.init.setup.remove_files = python.files;
  if (!python.path.empty()) settings.init.setup.remove_directories = {python.path};
  std::vector<std::string> notes;
  const auto logs = launcher::open_first_logs(plan, [&](const std::string& note) { notes.push_back(note); });
  launcher::make_python_directory(python, program.interpreter);

  LaunchLog log(STDERR_FILENO, config.log_level);
  log.show_start(config, plan);
  for (const std::string& note : notes) log.warning(note);
  Narrator narrator(log, plan);
  log.set_patience(kPatience);
  const launcher::JobState state = launcher::run_job(plan, logs, leases, settings, narrator);
  log.set_patience(std::nullopt);
  launcher::remove_python_directory(python);
  const launcher::Report report = launcher::make_report(state, plan);
  log.show_end(report, plan, report.failed ? launcher::last_lines(logs[*report.failed], kTailBytes) : "");
  return report.exit_status;
}

int launch(const launcher::JobConfig& config, const Environ& environment) {
  const std::string directory = own_directory();
  auto found = launcher::find_program(config, environment, directory);
  if (const auto* refusal = std::get_if<launcher::ProgramRefusal>(&found))
    return refuse(refusal->error, refusal->exit_status);
  const auto& program = std::get<launcher::Program>(found);

  launcher::RunSettings settings;
  settings.init.program = launcher::find_init(directory);
  settings.init.setup.open_files = raise_open_files();
  launcher::PortLeases leases;
  launcher::HostFacts facts = launcher::probe_host(config, program, environment, leases);
  const std::string log_dir = launcher::absolute_path(config.log_dir);
  const auto python = program.interpreter.empty()
                          ? launcher::PythonDirectory()
                          : launcher::plan_python_directory(program.interpreter, log_dir, facts.pod_name);
  facts.python_directory = python.path;
  const launcher::Plan plan = launcher::make_plan(config, program, facts);
  switch (config.dry_run) {
    case launcher::DryRun::text:
      return print(cli::to_text(plan));
    case launcher::DryRun::json:
      return print(launcher::to_json(plan));
    case launcher::DryRun::sh:
      return print(cli::to_shell(plan));
    case launcher::DryRun::no:
      break;
  }
  settings.viewed = launcher::viewed_processes(plan, config.show);
  settings.view.raw = launcher::is_raw(config.show);
  settings.view.colour = launcher::use_colour(config.color, ::isatty(STDOUT_FILENO) == 1, environment);
  return run_plan(config, plan, python, program, leases, std::move(settings));
}

int run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  constexpr std::string_view kCompletion = "--completion=";
  if (arguments.size() == 1 && arguments[0].starts_with(kCompletion))
    return print(cli::completion_script(std::string_view(arguments[0]).substr(kCompletion.size())));
  if (const cli::Command* command = cli::find_command(arguments))
    return command->run({arguments.begin() + 1, arguments.end()}, Environ::of_process());
  if (arguments.size() == 1 && arguments[0] == launcher::kRunCheckProcess)
    return launcher::run_check_process(Environ::of_process());
  const cli::CommandLine line = cli::parse_command_line(arguments);
  if (line.help) return print(cli::help_text());
  if (line.version) return print("fleetrun " FLEETRUN_VERSION "\n");
  const Environ environment = Environ::of_process();
  return launch(launcher::make_job_config(line.options, environment), environment);
}

}  // namespace

int main(int argc, char** argv) {
  settle_process();
  int status = kRefused;
  try {
    status = run(argc, argv);
  } catch (const Error& error) {
    refuse(error, kRefused);
  } catch (const std::exception& error) {
    refuse(Error(ErrorKind::host, error.what()), kRefused);
  }
  ::_exit(status);  // everything is written by system calls: nothing is left to flush
}
