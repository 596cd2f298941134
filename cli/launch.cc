// The stages of a launch in their order: program, host, plan, run, report. Who is told about a job while it
// runs is decided here.
#include "cli/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <climits>
#include <optional>

#include "cli/console_reporter.h"
#include "cli/failure_screen.h"
#include "cli/launch_log.h"
#include "cli/render.h"
#include "launcher/cluster/coordinator.h"
#include "launcher/cluster/job_secret.h"
#include "launcher/failure/report.h"
#include "launcher/failure/verdict.h"
#include "launcher/host/find_program.h"
#include "launcher/host/probe_host.h"
#include "launcher/host/python_directory.h"
#include "launcher/host/run_directory.h"
#include "launcher/host/secret_file.h"
#include "launcher/logs/log_choice.h"
#include "launcher/logs/log_files.h"
#include "launcher/model/host_facts.h"
#include "launcher/model/job_config.h"
#include "launcher/model/program.h"
#include "launcher/model/signal_map.h"
#include "launcher/plan/attempt_overlay.h"
#include "launcher/plan/kept_checkpoints.h"
#include "launcher/plan/large_environment.h"
#include "launcher/plan/make_plan.h"
#include "launcher/plan/plan_json.h"
#include "launcher/run/job_health.h"
#include "launcher/run/standard_input.h"
#include "launcher/run/supervisor.h"
#include "launcher/run/world_feed.h"
#include "launcher/status/detach.h"
#include "launcher/status/job_services.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

using launcher::JobConfig;
using launcher::Plan;

constexpr std::size_t kTailBytes = 3000;
constexpr std::chrono::milliseconds kPatience{
    200};  // with a terminal that takes no LAUNCH lines while the job runs

/// Every process of the job costs fleetrun a log and a port: it takes as many descriptors as it may. Returns
/// the limit that it had, which is the processes'.
std::uint64_t raise_open_files() {
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  const rlim_t inherited = files.rlim_cur;
  files.rlim_cur = files.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &files) == 0 ? inherited : 0;
}

/// Says so before anything is made, where the limit is too low for the job.
void check_open_files(std::size_t processes) {
  constexpr std::size_t kOfFleetrun = 14, kOfProcess = 2;  // its log and its port
  rlimit files = {};
  const std::size_t needed = kOfFleetrun + kOfProcess * processes;
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= needed) return;
  throw Error(ErrorKind::host,
              std::to_string(processes) + (processes == 1 ? " process needs " : " processes need ") +
                  std::to_string(needed) + " open files, and " + std::to_string(files.rlim_cur) +
                  " are allowed",
              "raise the limit (ulimit -Hn), or start fewer processes");
}

std::string own_directory() {
  char path[PATH_MAX];
  if (::access("/proc/self/exe", F_OK) != 0)
    throw Error(ErrorKind::host, "there is no /proc, by which fleetrun finds itself and its processes",
                "mount it: mount -t proc proc /proc");
  const ssize_t length = check_errno(static_cast<int>(::readlink("/proc/self/exe", path, sizeof path)),
                                     "readlink", "finding fleetrun");
  return launcher::directory_of(std::string(path, static_cast<std::size_t>(length)));
}

std::uint64_t random_seed() {
  std::uint64_t seed = 1;
  if (::getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
    seed = static_cast<std::uint64_t>(::getpid());
  return seed;
}

std::optional<launcher::ContainmentLevel> containment_level(launcher::Containment spec) {
  return launcher::parse_containment_level(launcher::to_string(spec));  // none for "auto"
}

/// The arguments of this program, as the user wrote them.
std::vector<std::string> own_arguments() {
  const UniqueFd fd(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  for (ssize_t count = 0; fd && (count = ::read(fd.value(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  std::vector<std::string> words = split(text, '\0');
  if (!words.empty()) words.erase(words.begin());
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

class Launch {
 public:
  Launch(JobConfig config, const Environ& environment, std::string directory,
         std::vector<launcher::Program> programs)
      : config_(std::move(config)),
        environment_(environment),
        directory_(std::move(directory)),
        programs_(std::move(programs)) {
    for (const launcher::Program& program : programs_) {
      if (interpreter_.empty()) interpreter_ = program.interpreter;
    }
  }

  Plan first_plan() {
    settings_.init.setup.open_files = raise_open_files();
    facts_ = launcher::probe_host(config_, programs_, environment_, leases_);
    if (!interpreter_.empty())
      python_ = launcher::plan_python_directory(interpreter_, launcher::absolute_path(config_.log_dir),
                                                facts_.pod_name);
    facts_.python_directory = python_.path;
    Plan plan = launcher::make_plan(config_, programs_, facts_);
    launcher::check_injections(config_, plan);
    return plan;
  }

  bool meets() const { return config_.rendezvous.kind != launcher::Rendezvous::Kind::none; }

  /// Waits for the other hosts of the job. Returns the exit status when there is nothing to run here.
  std::optional<int> meet(LaunchLog& log) {
    log.show_configuration(config_);
    announce_master();
    const launcher::NodeSelf self = {launcher::draw_id(), config_.rendezvous.node_name, facts_.pod_name,
                                     launcher::offer_of(config_, facts_)};
    const auto tell = [&log](launcher::NewsLevel level, const std::string& text) {
      constexpr launcher::LogLevel kLevels[] = {launcher::LogLevel::debug, launcher::LogLevel::info,
                                                launcher::LogLevel::warning};
      log.write(kLevels[static_cast<int>(level)], text);
    };
    feed_ = launcher::make_world_feed(config_.rendezvous.elastic && config_.mode == Mode::ps);
    link_.emplace(config_, environment_, self, launcher::is_ignored(SIGHUP), tell);
    log.info("Waiting peer start...");
    const launcher::Meet met = link_->meet();
    if (const auto* found = std::get_if<launcher::Met>(&met)) {
      settings_.world.world = found->world;
      adopt(found->world, found->node_rank);
      return std::nullopt;
    }
    link_->close();
    if (const auto* interrupted = std::get_if<launcher::Interrupted>(&met)) {
      log.info("Terminating with signal " + std::to_string(interrupted->signal));
      return launcher::status_of_stop(interrupted->drain ? launcher::kDrained : interrupted->signal);
    }
    const auto& end = std::get<launcher::JobEnd>(met);
    if (end.exit_status == 0) return 0;
    return refuse(Error(ErrorKind::network, end.why), end.exit_status);
  }

  /// The plan of this host in the world that it has met.
  Plan plan_in_world() const { return launcher::make_plan(config_, programs_, facts_); }

  int run(Plan first) {
    plan_ = std::move(first);
    const Plan& plan = plan_;
    // With other hosts it may be this very run's: the job may have formed again.
    if (!link_) launcher::check_kept_checkpoints(plan);
    configure(plan);
    settings_.values = run_values(plan);
    std::vector<std::string> notes;
    auto logs = launcher::open_first_logs(plan, [&](const std::string& note) { notes.push_back(note); });
    launcher::write_backup(plan);
    launcher::make_python_directory(python_, interpreter_);
    launcher::Background background;
    if (config_.detach) {
      if (const auto foreground = launcher::go_to_background(plan, background)) {
        const int status = say(*foreground);
        // The wire to the other hosts is the background's now: nothing of it may be taken down here.
        if (link_) ::_exit(status);
        return status;
      }
    }
    LaunchLog log(STDERR_FILENO, config_.log_level);
    if (!link_) log.show_configuration(config_);
    log.show_start(plan);
    for (const std::string& note : notes) log.warning(note);

    ConsoleReporter console_reporter(log, plan, to_string(config_.containment));
    settings_.observers = {&console_reporter};
    settings_.parts.push_back(launcher::job_health(config_, environment_));
    settings_.parts.push_back(launcher::job_services(services(background)));
    settle_terminal(std::move(background));
    log.set_patience(kPatience);
    const launcher::JobResult result = run_to_the_end(plan, std::move(logs), log);
    log.set_patience(std::nullopt);
    launcher::remove_python_directory(python_);
    const int status = conclude(result, log);
    if (link_) link_->close();
    return status;
  }

 private:
  /// Everything about the run that is known before anything is made.
  void configure(const Plan& plan) {
    launcher::InitSettings& init = settings_.init;
    init.program = launcher::find_init(directory_);
    init.setup.pod_name = plan.pod_name;
    init.setup.remove_files = python_.files;
    if (!python_.path.empty()) init.setup.remove_directories = {python_.path};
    init.setup.containment = containment_level(config_.containment);
    if (config_.require_containment) init.setup.required = containment_level(*config_.require_containment);
    settings_.seed = random_seed();
    settings_.replan = [this](int) { return next_plan(); };
    if (link_) {
      settings_.world.link = &*link_;
      settings_.parts.push_back(feed_->part());
      settings_.world.adopt = [this](const launcher::World& world, std::size_t rank) { adopt(world, rank); };
      settings_.world.renew_offer = [this] {
        facts_ = launcher::renew_ports(config_, std::move(facts_), leases_);
        return launcher::offer_of(config_, facts_);
      };
      settings_.world.failure_screen = [](const launcher::Report& report, const Plan& failed,
                                          const launcher::JobHistory& history,
                                          const std::vector<launcher::LogFile>& logs) {
        const std::string end =
            report.failed ? launcher::last_lines(logs[*report.failed], kTailBytes) : std::string();
        return failure_screen(report, failed, history, end);
      };
    }
    settings_.signals = launcher::signal_map_of(config_.signal_map);
    settings_.hangup_ignored = launcher::is_ignored(SIGHUP);
    settings_.stdin_of = launcher::input_process(config_.standard_input, plan);
    settings_.viewed = launcher::viewed_processes(plan, config_.show);
    settings_.view.raw = launcher::is_raw(config_.show);
    settings_.view.colour = launcher::use_colour(config_.color, ::isatty(STDOUT_FILENO) == 1, environment_);
    if (config_.log_through)
      settings_.log_through = {.program = launcher::find_log_program(init.program),
                               .limits = {config_.log_cap.value_or(0), config_.log_keep},
                               .on_lost = {}};
  }

  launcher::JobResult run_to_the_end(const Plan& plan, std::vector<launcher::LogFile> logs, LaunchLog& log) {
    try {
      return launcher::run_job(plan, std::move(logs), leases_, std::move(settings_));
    } catch (const Error& error) {
      write_verdict(launcher::refusal(error), plan, {}, log);
      throw;
    }
  }

  /// Says how the job ended: to programs, then to people.
  static int conclude(const launcher::JobResult& result, LaunchLog& log) {
    launcher::Report report = launcher::make_report(result.state, result.plan, result.history);
    const bool elsewhere =
        result.end && !result.state.stop_signal() && launcher::decided_elsewhere(*result.end, report);
    if (elsewhere) report = launcher::report_of(*result.end);
    write_verdict(report, result.plan, result.history, log);
    const std::string end =
        report.failed ? launcher::last_lines(result.logs[*report.failed], kTailBytes) : std::string();
    log.show_end(report, result.plan, end);
    if (!log.shows(launcher::LogLevel::error)) return report.exit_status;
    if (elsewhere && result.end->failure)
      log.raw("On " + result.end->node + ":\n" + result.end->failure->screen);
    else
      log.raw(failure_screen(report, result.plan, result.history, end));
    return report.exit_status;
  }

  static void write_verdict(const launcher::Report& report, const Plan& plan,
                            const launcher::JobHistory& history, LaunchLog& log) {
    launcher::write_verdict(to_json(report, plan, history, launcher::this_moment()), plan,
                            [&](const std::string& text) { log.warning(text); });
  }

  static int say(const launcher::Foreground& foreground) {
    print(foreground.output);
    LaunchLog(STDERR_FILENO, launcher::LogLevel::info).raw(foreground.error);
    return foreground.exit_status;
  }

  /// What the job has to do with the terminal: nothing, in the background.
  void settle_terminal(launcher::Background background) {
    if (config_.detach) {
      settings_.parts.push_back(launcher::tell_running(std::move(background.running)));
      settings_.hangup_ignored = true;
      settings_.stdin_of = std::nullopt;
      for (launcher::ViewedProcess& process : settings_.viewed) process.showing = launcher::Showing::never;
    }
    settings_.input = launcher::usable_input(STDIN_FILENO);
    if (settings_.stdin_of && settings_.input >= 0 && ::isatty(STDIN_FILENO) == 1)
      settings_.parts.push_back(launcher::share_terminal(*settings_.stdin_of));
  }

  launcher::ServiceSettings services(const launcher::Background& background) const {
    launcher::ServiceSettings services;
    services.launch_log = background.launch_log;
    services.detached = config_.detach;
    services.run_directories = launcher::run_directories(environment_, ::geteuid());
    services.metrics_directory = settings_.values.metrics_directory;
    if (config_.metrics) services.metrics = launcher::parse_metrics_address(*config_.metrics);
    services.environment = environment_;
    return services;
  }

  /// The same job on the same pod, with ports leased anew: those of the last attempt may be somebody else's
  /// by now.
  /// In a job of several hosts the ports are renewed before the world is made,
  /// since the others have to know them.
  Plan next_plan() {
    if (!link_) facts_ = launcher::renew_ports(config_, std::move(facts_), leases_);
    plan_ = launcher::make_plan(config_, programs_, facts_);
    launcher::write_backup(plan_);
    return plan_;
  }

  void adopt(const launcher::World& world, std::size_t node_rank) {
    facts_.world = world;
    facts_.node_rank = node_rank;
    feed_->publish(world, node_rank);
  }

  /// Without a rendezvous address of the user it is this host, at any free port; the others are told.
  void announce_master() {
    launcher::Rendezvous& rendezvous = config_.rendezvous;
    if (rendezvous.kind != launcher::Rendezvous::Kind::master || rendezvous.master.port != 0) return;
    rendezvous.master = leases_.lease_free(config_.host);
    leases_.give_up(rendezvous.master);  // the coordinator binds it at once
    const std::string dashes(80, '-');
    print("Copy the following command to other nodes to run.\n" + dashes + "\nfleetrun --master " +
          to_string(rendezvous.master) + " " + shell_words(own_arguments()) + "\n" + dashes + "\n");
  }

  /// What the processes are told of this run, and the files behind it.
  launcher::RunValues run_values(const Plan& plan) {
    const auto directories = launcher::run_directories(environment_, ::geteuid());
    if (plan.has_secret) write_secret(directories);
    launcher::RunValues values{std::to_string(settings_.seed), secret_file_.path(), {}};
    std::string why;
    if (plan.mode != Mode::ps) return values;
    if (const auto found = launcher::first_private_directory(directories, why))
      values.metrics_directory = found->path;
    return values;
  }

  /// What the processes prove themselves with.
  void write_secret(const std::vector<std::string>& directories) {
    const Secret secret =
        link_ ? launcher::job_secret(config_.rendezvous, environment_, facts_.world->run) : Secret::random();
    try {
      secret_file_ = launcher::SecretFile(directories, facts_.pod_name, secret);
    } catch (const Error&) {
      if (config_.mode == Mode::ps) throw;
      // Few collective jobs need it; theirs then take the user's own, or say what is missing.
    }
  }

  JobConfig config_;
  const Environ& environment_;
  const std::string directory_;
  const std::vector<launcher::Program> programs_;
  std::string interpreter_;  // of the first program that has one
  launcher::PortLeases leases_;
  launcher::HostFacts facts_;
  launcher::PythonDirectory python_;
  launcher::SecretFile secret_file_;
  std::optional<launcher::WorldLink> link_;    // in a job of several hosts
  std::shared_ptr<launcher::WorldFeed> feed_;  // with it
  Plan plan_;                                  // of the newest attempt
  launcher::RunSettings settings_;
};

}  // namespace

int print(const std::string& text) {
  LaunchLog(STDOUT_FILENO, launcher::LogLevel::info).raw(text);
  return 0;
}

int refuse(const Error& error, int status) {
  LaunchLog(STDERR_FILENO, launcher::LogLevel::info).raw(render(error, "fleetrun") + "\n");
  return status;
}

int launch(const JobConfig& requested, const Environ& environment) {
  const JobConfig config = launcher::settle_rendezvous(requested);
  const std::string directory = own_directory();
  auto found = launcher::find_programs(config, environment, directory);
  if (const auto* refusal = std::get_if<launcher::ProgramRefusal>(&found))
    return refuse(refusal->error, refusal->exit_status);

  Launch launch(config, environment, directory, std::move(std::get<std::vector<launcher::Program>>(found)));
  Plan plan = launch.first_plan();
  switch (config.dry_run) {
    case launcher::DryRun::text:
      return print(to_text(launcher::as_first_started(std::move(plan))));
    case launcher::DryRun::json:
      return print(launcher::to_json(launcher::as_first_started(std::move(plan))));
    case launcher::DryRun::sh:
      return print(to_shell(launcher::as_first_started(std::move(plan))));
    case launcher::DryRun::no:
      break;
  }
  if (launch.meets()) {
    LaunchLog log(STDERR_FILENO, config.log_level);
    if (const auto status = launch.meet(log)) return *status;
    plan = launch.plan_in_world();
  }
  check_open_files(plan.processes.size());
  launcher::check_exec_size(plan, environment, launcher::max_exec_bytes());
  return launch.run(std::move(plan));
}

}  // namespace fleetrun::cli
