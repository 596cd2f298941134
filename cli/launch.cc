#include "cli/launch.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "cli/commands.h"
#include "cli/console_reporter.h"
#include "cli/failure_screen.h"
#include "cli/job_choice.h"
#include "cli/job_page.h"
#include "cli/launch_log.h"
#include "cli/render.h"
#include "cli/torchrun_failures.h"
#include "cli/ui_command.h"
#include "launcher/cluster/coordinator.h"
#include "launcher/host/find_program.h"
#include "launcher/host/own_process.h"
#include "launcher/model/program.h"
#include "launcher/plan/attempt_overlay.h"
#include "launcher/plan/plan_json.h"
#include "launcher/session/session.h"
#include "runtime/language/translator.h"

namespace fleetrun::cli {
namespace {

using launcher::Plan;

// With a terminal that takes no lines.
constexpr std::chrono::milliseconds kPatience{200};

class Console : public launcher::SessionConsole {
 public:
  Console(const launcher::JobConfig& config, const Environ& environment)
      : environment_(environment),
        level_(config.log_level),
        log_(STDERR_FILENO, level_),
        containment_(to_string(config.containment)) {}

  void print(const std::string& text) override { LaunchLog(STDOUT_FILENO, level_).raw(text); }
  void raw(const std::string& text) override { log_.raw(text); }
  void write(launcher::LogLevel level, const std::string& text) override { log_.write(level, text); }
  void warn_apart(const std::string& text) override { cli::warn_apart(level_, text); }
  void tell(const std::string& text) override { log_.tell(text); }
  void refuse(const Error& error) override { cli::refuse(error, 0); }
  void show_configuration(const launcher::JobConfig& config) override { log_.show_configuration(config); }
  void show_start(const Plan& plan) override { log_.show_start(plan); }
  std::unique_ptr<launcher::SessionPage> serve_page(const launcher::JobConfig& config,
                                                    const Plan& plan) override {
    if (!config.ui) return nullptr;
    launcher::UiSettings settings = ui_settings(environment_);
    settings.log_dir = plan.log_dir;
    settings.job = plan.pod_name;
    return serve_job_page(*config.ui, std::move(settings), log_);
  }
  std::unique_ptr<launcher::JobObserver> reporter(const Plan& plan) override {
    return std::make_unique<ConsoleReporter>(log_, plan, containment_);
  }
  void set_patience(std::optional<std::chrono::milliseconds> patience) override {
    log_.set_patience(patience);
  }
  void show_end(const launcher::Report& report, const Plan& plan, std::string_view last_lines,
                const std::string& screen) override {
    log_.show_end(report, plan, std::string(last_lines));
    if (log_.shows(launcher::LogLevel::error)) log_.raw(translated_lines(screen));
  }
  std::string failure_screen(const launcher::Report& report, const Plan& plan,
                             const launcher::JobHistory& history,
                             std::string_view last_lines) const override {
    return cli::failure_screen(report, plan, history, last_lines);
  }

 protected:
  LaunchLog& log() { return log_; }

 private:
  const Environ& environment_;
  const launcher::LogLevel level_;
  LaunchLog log_;
  std::string containment_;
};

/// Ends with torchrun's table of failures.
class TorchrunConsole final : public Console {
 public:
  TorchrunConsole(const launcher::JobConfig& config, const Environ& environment)
      : Console(config, environment),
        name_(config.script),
        reply_(environment.value_or("TORCHELASTIC_ERROR_FILE", "")) {}

  void show_end(const launcher::Report& report, const Plan& plan, std::string_view last_lines,
                const std::string& screen) override {
    if (report.first) return log().raw(screen);
    Console::show_end(report, plan, last_lines, screen);
  }
  std::string failure_screen(const launcher::Report& report, const Plan& plan,
                             const launcher::JobHistory& history, std::string_view) const override {
    if (!reply_.empty()) write_reply(report, plan, history, reply_);
    return torchrun_failures(report, plan, history, name_);
  }

 private:
  std::string name_, reply_;
};

std::unique_ptr<Console> make_console(const launcher::JobConfig& config, const Environ& environment) {
  if (config.torchrun) return std::make_unique<TorchrunConsole>(config, environment);
  return std::make_unique<Console>(config, environment);
}

int show(launcher::DryRun form, Plan plan) {
  plan = launcher::as_first_started(std::move(plan));
  if (form == launcher::DryRun::json) return print(launcher::to_json(plan));
  return print(form == launcher::DryRun::sh ? to_shell(plan) : to_text(plan));
}

/// A script that is not there may be a slip of a command's name, or on the head alone.
Error with_more_advice(const Error& error, const launcher::JobConfig& config) {
  if (config.rendezvous.by_order)
    return Error(error.kind(), error.what(),
                 error.hint() +
                     "; what runs has to be on this host too, in the same place: --ship takes the "
                     "script's folder along, --ship=venv the Python");
  const bool may_be_a_command = config.script.find_first_of("./") == std::string::npos && !config.python;
  constexpr std::string_view kVerbs[] = {"run", "launch", "start", "exec", "submit"};
  if (std::ranges::find(kVerbs, config.script) != std::end(kVerbs) && !config.file)
    return Error(error.kind(), error.what(), "leave it out: flags and script follow fleetrun at once");
  const auto meant = may_be_a_command ? nearest_command(config.script) : std::nullopt;
  if (!meant || config.file || config.script_kind != launcher::ScriptKind::by_name) return error;
  return Error(error.kind(), error.what(), "did you mean fleetrun " + *meant + "? If not, " + error.hint());
}

/// A program from PATH that stands where a command of fleetrun's, or one for the chosen Python, was expected.
std::optional<std::string> note_of_program(const launcher::JobConfig& config,
                                           const launcher::Program& program, const Environ& environment) {
  const std::string& name = config.script;
  const bool named = !config.file && !config.torchrun && program.interpreter.empty() &&
                     config.script_kind == launcher::ScriptKind::by_name &&
                     name.find('/') == std::string::npos && name != launcher::kRunCheck;
  if (!named) return std::nullopt;
  if (nearest_command(name) == name)
    return "each process runs " + program.path + "; fleetrun's own " + name +
           " is a command before all flags: " +
           (config.python && name == "torchrun" ? "PYTHON_EXEC=" + *config.python + " " : "") + "fleetrun " +
           name;
  if (!config.python) return std::nullopt;
  const auto python = launcher::find_on_path(*config.python, environment.value_or("PATH", ""));
  if (!python || launcher::directory_of(*python) == launcher::directory_of(program.path)) return std::nullopt;
  return "--python=" + *config.python + " does not run " + program.path +
         ": no program of that name is beside that interpreter";
}

}  // namespace

int print(const std::string& text) {
  write_text(STDOUT_FILENO, text);
  return 0;
}

void complain(const std::string& text) {
  LaunchLog(STDERR_FILENO, launcher::LogLevel::info).raw(text);
}

void warn_apart(launcher::LogLevel level, const std::string& text) {
  LaunchLog log(STDERR_FILENO, level);
  log.set_patience(kPatience);
  log.warning(text);
}

int refuse(const Error& error, int status) {
  LaunchLog(STDERR_FILENO, launcher::LogLevel::info).raw(translated_lines(render(error, "fleetrun")) + "\n");
  return status;
}

int launch(const launcher::JobConfig& requested, const Environ& environment) {
  const auto warn = [&](const std::string& text) { warn_apart(requested.log_level, text); };
  launcher::JobConfig config = launcher::settle_rendezvous(requested, warn);
  const std::string directory = launcher::directory_of(launcher::own_program());
  auto found = launcher::find_programs(config, environment, directory);
  if (const auto* refusal = std::get_if<launcher::ProgramRefusal>(&found))
    return refuse(with_more_advice(refusal->error, config), refusal->exit_status);
  auto& programs = std::get<std::vector<launcher::Program>>(found);
  if (auto note = note_of_program(config, programs.front(), environment))
    config.notes.push_back(*std::move(note));
  const std::unique_ptr<Console> console = make_console(config, environment);
  launcher::Session session(config, std::move(programs), environment, directory, *console);
  Plan plan = session.first_plan();
  if (config.dry_run != launcher::DryRun::no) return show(config.dry_run, std::move(plan));
  return session.run(std::move(plan));
}

}  // namespace fleetrun::cli
