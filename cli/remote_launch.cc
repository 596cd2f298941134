#include "cli/remote_launch.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "cli/job_page.h"
#include "cli/launch.h"
#include "cli/launch_log.h"
#include "launcher/host/event_command.h"
#include "launcher/host/find_program.h"
#include "launcher/host/job_signals.h"
#include "launcher/host/own_process.h"
#include "launcher/model/job_config.h"
#include "launcher/model/signal_map.h"
#include "launcher/remote/controller.h"
#include "launcher/remote/controller_coordinator.h"
#include "launcher/remote/make_cargo.h"
#include "runtime/base/error.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/text.h"
#include "runtime/secure/secret.h"

namespace fleetrun::cli {
namespace {

using launcher::LogLevel;
namespace remote = launcher::remote;

constexpr std::chrono::milliseconds kPatience{200};  // with a terminal that takes no LAUNCH lines
constexpr std::chrono::milliseconds kLongestLogin{30'000};
constexpr std::chrono::seconds kShortestConnect{1}, kLongestConnect{10};
constexpr std::size_t kMaxListed = 8;
constexpr std::size_t kMaxRemembered = 1000;

LogLevel level_of(const std::string& text) {
  for (const LogLevel level :
       {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error, LogLevel::critical}) {
    if (launcher::to_string(level) == text) return level;
  }
  return LogLevel::info;
}

class Teller final : public remote::ControllerObserver {
 public:
  Teller(LaunchLog& log, bool all, launcher::EventCommand* events) : log_(log), all_(all), events_(events) {}

  void say(LogLevel level, const std::string& text) override {
    if (level <= LogLevel::info) said_.clear();  // a new part of the job, in which things may be said again
    remember(text);
    log_.write(level, text);
  }
  void tell(const std::string& text) override { log_.tell(text); }
  /// Of what a host says, only what somebody has to know is passed on,
  /// and what many hosts say alike only once.
  void say(const std::string& host, const remote::Log& record) override {
    if (record.text.starts_with(kPage)) return log_.tell(host + ": " + record.text);
    const LogLevel level = level_of(record.level);
    if (all_ || (level >= LogLevel::warning && remember(record.text)))
      log_.write(level, host + ": " + record.text);
  }
  void notify(const launcher::JobNotice& notice) override {
    if (events_) events_->tell(notice);
  }

 private:
  /// False: it has been said.
  bool remember(const std::string& text) {
    if (said_.size() >= kMaxRemembered) said_.clear();
    return said_.insert(text).second;
  }

  LaunchLog& log_;
  bool all_;
  launcher::EventCommand* const events_;
  std::set<std::string> said_;
};

void say_start(LaunchLog& log, const launcher::JobConfig& config, const remote::ControllerPlan& plan) {
  std::vector<std::string> names;
  for (const remote::HostPart& part : plan.hosts) {
    if (names.size() == kMaxListed) break;
    names.push_back(written(part.host));
  }
  std::string list = join(names, ", ");
  if (plan.hosts.size() > names.size())
    list += " and " + std::to_string(plan.hosts.size() - names.size()) + " others";
  log.info("Job: " + config.job_id + ", mode " + std::string(to_string(plan.mode)) + ", hosts " +
           std::to_string(plan.hosts.size()) + "[" + std::to_string(plan.nodes.min) + ":" +
           std::to_string(plan.nodes.max) + "], elastic " + (plan.elastic ? "True" : "False") + ": " + list);
  for (const std::string& note : config.notes) log.warning(note);
  for (const std::string& note : plan.notes) log.warning(note);
}

remote::ControllerSettings settings_of(const launcher::JobConfig& config, const remote::ControllerPlan& plan,
                                       const remote::ControllerPlace& place, const Environ& environment) {
  remote::ControllerSettings settings;
  remote::FanOutSettings& fan_out = settings.fan_out;
  fan_out.ssh = plan.ssh;
  fan_out.srun = plan.srun;
  fan_out.program = plan.program;
  fan_out.own_program = place.program;
  fan_out.environment = environment.entries();
  fan_out.window = plan.window;
  fan_out.hello_timeout = std::min(kLongestLogin, config.rendezvous.join_timeout);
  // Shorter: ssh knows better than we do why it has not connected.
  fan_out.connect_timeout =
      std::clamp(std::chrono::duration_cast<std::chrono::seconds>(fan_out.hello_timeout) - kShortestConnect,
                 kShortestConnect, kLongestConnect);
  fan_out.seed = random_number<std::uint64_t>();
  settings.login_patience = config.rendezvous.join_timeout + fan_out.hello_timeout;
  settings.own = place.own;
  const Secret secret =
      config.rendezvous.secret_file ? read_secret_file(*config.rendezvous.secret_file) : Secret::random();
  settings.secret = secret.bytes();
  settings.start_coordinator = remote::controller_coordinator(config, plan, secret);
  std::vector<std::string> signals;
  for (const auto& [signal, action] : config.signal_map) signals.push_back(signal + "=" + action);
  settings.signals = launcher::parse_signal_map(join(signals, ","));
  settings.hangup_ignored = launcher::is_ignored(SIGHUP);
  for (const auto& [role, grace] : config.grace.roles)
    settings.end_patience = std::max(settings.end_patience, grace);
  settings.end_patience += config.grace.all;
  return settings;
}

int conclude(const remote::ControllerResult& result, LaunchLog& log) {
  log.set_patience(std::nullopt);
  if (result.exit_status == 0)
    log.info("Job completed");
  else if (!result.end.why.empty())
    log.write(result.stopped ? LogLevel::info : LogLevel::error, result.end.why);
  log.info("Exit code " + std::to_string(result.exit_status));
  if (!result.screen.empty() && log.shows(LogLevel::error))
    log.raw("on " + result.host + ":\n" + result.screen);
  return result.exit_status;
}

}  // namespace

int launch_on_hosts(const launcher::Options& options, const launcher::JobConfig& config,
                    const Environ& environment) {
  remote::ControllerPlace place;
  place.directory = launcher::absolute_path("");
  place.directory.pop_back();
  place.program = launcher::own_program();
  place.own = remote::own_host();
  remote::ControllerPlan plan = remote::make_controller_plan(options, config, environment, place);
  if (config.dry_run != launcher::DryRun::no) return print(remote::to_text(plan));
  launcher::raise_open_files();
  remote::ControllerSettings settings = settings_of(config, plan, place, environment);
  LaunchLog log(STDERR_FILENO, config.log_level);
  say_start(log, config, plan);
  std::vector<std::string> notes;
  settings.fan_out.cargo = remote::make_cargo(config, plan, place, environment, notes);
  for (const std::string& note : notes) log.info(note);
  const auto events = launcher::event_command(
      {.command = config.on_event,
       .job_id = config.job_id,
       .log_dir = launcher::absolute_path(config.log_dir),
       .environment = environment,
       .warn = [&config](const std::string& text) { warn_apart(config.log_level, text); }});
  if (events) events->begin();
  Teller teller(log, config.log_level == LogLevel::debug, events.get());
  log.set_patience(kPatience);
  const remote::ControllerResult result = remote::run_on_hosts(plan, std::move(settings), teller);
  launcher::leave_with(result.exit_status);
  if (events) {
    events->tell({.kind = launcher::JobNotice::Kind::end,
                  .host = result.end.node,
                  .why = result.end.why,
                  .exit_status = result.exit_status});
    events->finish();
  }
  return conclude(result, log);
}

}  // namespace fleetrun::cli
