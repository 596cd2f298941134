#include "launcher/session/session.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "launcher/cluster/coordinator.h"
#include "launcher/cluster/job_secret.h"
#include "launcher/failure/verdict.h"
#include "launcher/host/find_program.h"
#include "launcher/host/job_signals.h"
#include "launcher/host/own_process.h"
#include "launcher/host/port_lease.h"
#include "launcher/host/probe_host.h"
#include "launcher/host/program_digest.h"
#include "launcher/host/run_directory.h"
#include "launcher/logs/log_choice.h"
#include "launcher/model/signal_map.h"
#include "launcher/plan/attempt_overlay.h"
#include "launcher/plan/kept_checkpoints.h"
#include "launcher/plan/large_environment.h"
#include "launcher/plan/make_plan.h"
#include "launcher/plan/plan_json.h"
#include "launcher/record/job_report.h"
#include "launcher/run/job_health.h"
#include "launcher/run/member_link.h"
#include "launcher/run/own_terminal.h"
#include "launcher/run/server_count.h"
#include "launcher/run/standard_input.h"
#include "launcher/session/job_notices.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kTailBytes = 3000;
// With a terminal that takes no LAUNCH lines while the job runs.
constexpr std::chrono::milliseconds kPatience{200};

std::optional<ContainmentLevel> containment_level(Containment spec) {
  return parse_containment_level(to_string(spec));  // none for "auto"
}

std::string end_of_failed(const Report& report, const std::vector<LogFile>& logs) {
  return report.failed ? last_lines(logs[*report.failed], kTailBytes) : std::string();
}

}  // namespace

Session::Session(JobConfig config, std::vector<Program> programs, const Environ& environment,
                 std::string directory, SessionConsole& console)
    : config_(std::move(config)),
      programs_(std::move(programs)),
      environment_(environment),
      directory_(std::move(directory)),
      console_(console) {
  for (const Program& program : programs_) {
    if (interpreter_.empty()) interpreter_ = program.interpreter;
  }
}

Plan Session::first_plan() {
  settings_.init.setup.open_files = raise_open_files();
  facts_ = probe_host(config_, programs_, environment_, leases_, claims_);
  if (!interpreter_.empty())
    python_ = plan_python_directory(interpreter_, absolute_path(config_.log_dir), facts_.pod_name);
  facts_.python_directory = python_.path;
  Plan plan = make_plan(config_, programs_, facts_);
  check_injections(config_, plan);
  return plan;
}

int Session::run(Plan first) {
  plan_ = std::move(first);
  events_ = event_command({.command = plan_.on_event,
                           .job_id = plan_.job_id,
                           .log_dir = plan_.log_dir,
                           .environment = environment_,
                           .warn = [this](const std::string& text) { console_.warn_apart(text); }});
  const int status = meet_and_run();
  end_events();
  page_.reset();
  return status;
}

int Session::meet_and_run() {
  if (config_.rendezvous.kind != Rendezvous::Kind::none) {
    if (const auto status = meet()) return *status;
    plan_ =
        make_plan(config_, programs_, facts_, place_);  // the part of this host in the world that it has met
  } else if (plan_.processes.size() > 1 && !reaches_itself(config_.host)) {
    console_.warn_apart("the loopback interface is down: processes cannot reach each other at " +
                        printable(config_.host) + " (ip link set lo up)");
  }
  check_null_device();
  check_open_files(plan_.processes.size());
  check_exec_size(plan_, environment_, max_exec_bytes());
  return run_here();
}

/// Waits for the other hosts of the job. Returns the exit status when there is nothing to run here.
std::optional<int> Session::meet() {
  console_.show_configuration(config_);
  announce_master();
  const NodeSelf self = {draw_id(), config_.rendezvous.node_name, facts_.pod_name, offer_of(config_, facts_),
                         digest_of(programs_)};
  const auto tell = [this](NewsLevel level, const std::string& text) {
    constexpr LogLevel kLevels[] = {LogLevel::debug, LogLevel::info, LogLevel::warning};
    console_.write(kLevels[static_cast<int>(level)], text);
  };
  feed_ = make_world_feed(config_.rendezvous.elastic && config_.mode == Mode::ps);
  link_.emplace(config_, environment_, self, is_ignored(SIGHUP), tell,
                [this](const JobNotice& notice) { notify(notice); });
  console_.write(LogLevel::info, "Waiting peer start...");
  const Meet met = link_->meet();
  if (const auto* found = std::get_if<Met>(&met)) {
    settings_.world.world = found->world;
    adopt(found->world, found->node_rank);
    return std::nullopt;
  }
  if (const auto* interrupted = std::get_if<Interrupted>(&met)) {
    console_.tell("Terminating with signal " + std::to_string(interrupted->signal));
    return part_with(status_of_stop(interrupted->drain ? kDrained : interrupted->signal));
  }
  const auto& end = std::get<JobEnd>(met);
  if (end.exit_status != 0) console_.refuse(Error(ErrorKind::network, end.why));
  return part_with(end.exit_status);
}

/// The last words to the other hosts.
int Session::part_with(int exit_status) {
  leave_with(exit_status);
  link_->close();
  return exit_status;
}

/// Without a rendezvous address of the user it is this host, at any free port; the others are told.
void Session::announce_master() {
  Rendezvous& rendezvous = config_.rendezvous;
  if (rendezvous.kind != Rendezvous::Kind::master || rendezvous.master.port != 0) return;
  rendezvous.master = leases_.lease_free(config_.host);
  leases_.give_up(rendezvous.master);  // the coordinator binds it at once
  if (config_.torchrun) {              // its standard output is the script's alone
    console_.write(LogLevel::warning,
                   "other hosts come with --rdzv-endpoint=" + to_string(rendezvous.master));
    return;
  }
  const std::string dashes(80, '-');
  console_.print("Copy the following command to other nodes to run.\n" + dashes + "\nfleetrun --master " +
                 to_string(rendezvous.master) + " " + shell_words(own_arguments()) + "\n" + dashes + "\n");
}

int Session::run_here() {
  // With other hosts it may be this very run's: the job may have formed again.
  if (!link_) check_kept_checkpoints(plan_);
  configure();
  settings_.values = run_values();
  std::vector<std::string> notes;
  auto logs = open_first_logs(plan_, [&](const std::string& note) { notes.push_back(note); });
  write_backup(plan_);
  make_python_directory(python_, interpreter_);
  Background background;
  if (config_.detach) {
    if (const auto foreground = go_to_background(plan_, background)) {
      console_.print(foreground->output);
      console_.raw(foreground->error);
      // Secret, claims and the wire to other hosts are the background's now: nothing may be taken down here.
      ::_exit(foreground->exit_status);
    }
  }
  page_ = console_.serve_page(config_, plan_);
  if (!link_) console_.show_configuration(config_);
  console_.show_start(plan_);
  for (const std::string& note : notes) console_.write(LogLevel::warning, note);

  const std::unique_ptr<JobObserver> reporter = console_.reporter(plan_);
  settings_.observers = {reporter.get()};
  const auto heartbeats = std::make_shared<HeartbeatReader>();
  settings_.parts.push_back(job_health(config_, environment_, heartbeats));
  settings_.parts.push_back(member_link(leases_, config_.host));
  const auto servers = std::make_shared<ServerCount>();
  settings_.parts.push_back(server_count(servers));
  settings_.parts.push_back(job_services(services(background, heartbeats, servers)));
  redactor_ = job_redactor(plan_, environment_, own_arguments());
  settings_.parts.push_back(flight_recorder(recorder()));
  if (events_) {
    events_->begin();
    settings_.parts.push_back(
        job_notices(link_.has_value(), [this](JobNotice notice) { notify(std::move(notice)); }));
  }
  settle_terminal(std::move(background));
  console_.set_patience(kPatience);
  const JobResult result = run_to_the_end(std::move(logs));
  console_.set_patience(std::nullopt);
  remove_python_directory(python_);
  secret_file_ = {};
  const int status = conclude(result);
  return link_ ? part_with(status) : status;
}

/// Everything about the run that is known before anything is made.
void Session::configure() {
  InitSettings& init = settings_.init;
  init.program = find_init(directory_);
  init.setup.pod_name = plan_.pod_name;
  init.setup.remove_files = python_.files;
  if (!python_.path.empty()) init.setup.remove_directories = {python_.path};
  init.setup.containment = containment_level(config_.containment);
  if (config_.require_containment) init.setup.required = containment_level(*config_.require_containment);
  settings_.seed = random_number<std::uint64_t>();
  settings_.replan = [this](int attempt) {
    Plan next = next_plan();
    if (const std::string tables = tables_of_attempt(next, attempt); !tables.empty())
      console_.write(LogLevel::warning, tables);
    return next;
  };
  if (link_) configure_world();
  settings_.signals = signal_map_of(config_.signal_map);
  settings_.hangup_ignored = is_ignored(SIGHUP);
  stdin_of_ = input_process(config_.standard_input, plan_);
  if (config_.pty) check_own_terminal(plan_, stdin_of_, usable_input(STDIN_FILENO));
  settings_.views =
      views_of(plan_, config_, use_colour(config_.color, ::isatty(STDOUT_FILENO) == 1, environment_));
  if (config_.log_through)
    settings_.log_through = {.program = find_log_program(init.program),
                             .limits = {config_.log_cap.value_or(0), config_.log_keep},
                             .on_lost = {}};
}

void Session::configure_world() {
  settings_.world.link = &*link_;
  settings_.parts.push_back(feed_->part());
  settings_.world.adopt = [this](const World& world, std::size_t rank) { adopt(world, rank); };
  settings_.world.renew_offer = [this] {
    facts_ = renew_ports(config_, std::move(facts_), leases_);
    return offer_of(config_, facts_);
  };
  settings_.world.failure_screen = [this](const Report& report, const Plan& failed, const JobHistory& history,
                                          const std::vector<LogFile>& logs) {
    return console_.failure_screen(report, failed, history, end_of_failed(report, logs));
  };
}

/// What the processes are told of this run, and the files behind it.
RunValues Session::run_values() {
  const auto directories = run_directories(environment_, ::geteuid());
  if (plan_.has_secret) write_secret(directories);
  // One run on all hosts: servers of different hosts stand by for each other.
  RunValues values{link_ ? place_->world.run : std::to_string(settings_.seed), secret_file_.path(), {}};
  std::string why;
  if (plan_.mode != Mode::ps) return values;
  if (const auto found = first_private_directory(directories, why)) values.metrics_directory = found->path;
  return values;
}

/// What the processes prove themselves with.
void Session::write_secret(const std::vector<std::string>& directories) {
  const Secret secret = link_ ? job_secret(config_, environment_, place_->world.run) : Secret::random();
  try {
    secret_file_ = SecretFile(directories, facts_.pod_name, secret);
  } catch (const Error&) {
    if (config_.mode == Mode::ps) throw;
    // Few collective jobs need it; theirs then take the user's own, or say what is missing.
  }
}

/// What the job has to do with the terminal: nothing, in the background.
void Session::settle_terminal(Background background) {
  if (config_.detach) {
    settings_.parts.push_back(tell_running(std::move(background.running)));
    settings_.hangup_ignored = true;
    stdin_of_ = std::nullopt;
    settings_.views.clear();
  }
  if (!stdin_of_) return;
  const int input = usable_input(STDIN_FILENO);
  settings_.parts.push_back(config_.pty ? own_terminal(*stdin_of_) : give_input(*stdin_of_, input));
  if (input >= 0 && ::isatty(STDIN_FILENO) == 1) settings_.parts.push_back(share_terminal(*stdin_of_));
  for (JobViewPart& view : settings_.views) {
    if (config_.pty) view.viewed[*stdin_of_].showing = Showing::never;  // the terminal shows it
  }
}

RecorderSettings Session::recorder() const {
  return {.seed = settings_.seed,
          .first_attempt = link_ ? std::optional(settings_.world.world.attempt) : std::nullopt,
          .torchrun = config_.torchrun.has_value(),
          .command = own_arguments(),
          .redactor = redactor_};
}

ServiceSettings Session::services(const Background& background,
                                  std::shared_ptr<const HeartbeatReader> heartbeats,
                                  std::shared_ptr<ServerCount> servers) const {
  ServiceSettings services;
  services.servers = std::move(servers);
  services.heartbeats = std::move(heartbeats);
  services.launch_log = background.launch_log;
  services.detached = config_.detach;
  services.run_directories = run_directories(environment_, ::geteuid());
  services.metrics_directory = settings_.values.metrics_directory;
  if (config_.metrics) services.metrics = parse_metrics_address(*config_.metrics);
  services.environment = environment_;
  return services;
}

JobResult Session::run_to_the_end(std::vector<LogFile> logs) {
  try {
    return run_job(plan_, std::move(logs), leases_, std::move(settings_));
  } catch (const Error& error) {
    RecordEnd end;
    end.ended = this_moment();
    end.refusal = Refusal{error.kind(), error.what(), error.hint()};
    end.verdict = write_verdict(refusal(error), plan_, {}, end.ended);
    end_record(plan_, std::move(end), redactor_);
    if (!link_) notify(notice_of(refusal(error)));
    end_events();
    throw;
  }
}

/// Says how the job ended: to programs, then to people.
int Session::conclude(const JobResult& result) {
  const auto [report, screen_there] =
      launcher::conclude(result.state, result.plan, result.history, result.end);
  RecordEnd end;
  end.ended = this_moment();
  end.end = result.end;
  end.verdict = write_verdict(report, result.plan, result.history, end.ended);
  end.last_lines = end_of_failed(report, result.logs);
  end.screen = screen_there ? *screen_there
                            : console_.failure_screen(report, result.plan, result.history, end.last_lines);
  if (report.outcome != Outcome::completed) end.logs = ends_of_logs(result.plan, result.logs);
  end_record(result.plan, end, redactor_);
  leave_with(report.exit_status);
  console_.show_end(report, result.plan, end.last_lines, end.screen);
  if (!link_) notify(notice_of(report));
  return report.exit_status;
}

/// The end is told last of all, when its verdict is there.
void Session::notify(JobNotice notice) {
  if (notice.kind == JobNotice::Kind::end)
    end_ = std::move(notice);
  else if (events_)
    events_->tell(std::move(notice));
}

void Session::end_events() {
  if (!events_) return;
  if (end_) events_->tell(*std::exchange(end_, std::nullopt));
  events_->finish();
}

std::string Session::write_verdict(const Report& report, const Plan& plan, const JobHistory& history,
                                   Moment ended) {
  std::string verdict = to_json(report, plan, history, ended);
  launcher::write_verdict(verdict, plan,
                          [this](const std::string& text) { console_.write(LogLevel::warning, text); });
  return verdict;
}

/// The same job on the same pod, with ports leased anew: those of the last attempt may be somebody else's by
/// now. In a job of several hosts the ports are renewed before the world is made, since the others have to
/// know them.
Plan Session::next_plan() {
  if (!link_) facts_ = renew_ports(config_, std::move(facts_), leases_);
  plan_ = make_plan(config_, programs_, facts_, place_);
  write_backup(plan_);
  return plan_;
}

void Session::adopt(const World& world, std::size_t node_rank) {
  place_ = {world, node_rank};
  feed_->publish(world, node_rank);
}

}  // namespace fleetrun::launcher
