// The words of `fleetrun logs`; what they choose is shown by launcher/logs/log_show.
#include "cli/logs_command.h"

#include <unistd.h>

#include <algorithm>

#include "cli/command_flags.h"
#include "cli/launch_log.h"
#include "launcher/host/run_directory.h"
#include "launcher/logs/log_catalog.h"
#include "launcher/logs/log_choice.h"
#include "launcher/logs/log_show.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

using launcher::LogSpec;

constexpr CommandFlag kLogsFlags[] = {
    {"follow", 'f', "", "go on until the job is over"},
    {"rank", 'r', "N,…", "of these ranks"},
    {"role", 0, "ROLE,…", "of these roles: trainer, server, or a job file's own"},
    {"attempt", 0, "N|all", "of this attempt; default: the newest of each process"},
    {"lines", 'n', "N", "begin with the last N lines of each log"},
    {"log_dir", 0, "DIR", "where the logs are; default: log, or PADDLE_LOG_DIR"},
    {"color", 0, "WHEN", "auto, always or never colour the names before lines"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kLogsUsage = R"(usage: fleetrun logs [FLAGS] [JOB]

Shows the logs of a job that runs or ran: of JOB, a pod name or job id; without it of the newest one in the
log directory, or of the only job that runs.

)";

struct Request {
  std::string log_dir;
  bool log_dir_given = false;
  std::optional<std::string> job;
  launcher::Color colour = launcher::Color::automatic;
  LogSpec logs;
};

[[noreturn]] void refuse_lines(const std::string& what, const std::string& hint = {}) {
  throw Error(ErrorKind::usage, what, hint);
}

launcher::Color read_colour(const std::string& text) {
  using launcher::Color;
  if (text == "auto") return Color::automatic;
  if (text == "always") return Color::always;
  if (text == "never") return Color::never;
  refuse_lines("--color is '" + printable(text) + "': auto, always or never is needed");
}

std::vector<int> read_ranks(const std::string& text) {
  std::vector<int> ranks;
  for (const std::string& part : split(text, ',')) {
    const auto rank = parse_integer(part);
    if (!rank || *rank < 0 || *rank > 1'000'000)
      refuse_lines("--rank is '" + printable(text) + "': ranks are needed", "write it as 0,3");
    ranks.push_back(static_cast<int>(*rank));
  }
  return ranks;
}

Request read_request(const CommandArguments& words, const Environ& environment) {
  Request request;
  if (words.words.size() > 1)
    refuse_lines("logs shows one job, and " + std::to_string(words.words.size()) + " are named");
  if (!words.words.empty()) request.job = words.words.front();
  const std::string from_environment = environment.value_or("PADDLE_LOG_DIR", "");
  request.log_dir = words.value("log_dir").value_or(from_environment.empty() ? "log" : from_environment);
  request.log_dir_given = words.has("log_dir");
  request.colour = read_colour(words.value("color").value_or("auto"));
  LogSpec& logs = request.logs;
  logs.follow = words.has("follow");
  logs.lines = whole_number(words, "lines", 0);
  if (const auto roles = words.value("role")) logs.roles = split(*roles, ',');
  if (const auto ranks = words.value("rank")) logs.ranks = read_ranks(*ranks);
  logs.all_attempts = words.value("attempt") == "all";
  if (!logs.all_attempts) logs.attempt = whole_number(words, "attempt", 0);
  return request;
}

/// A running job that is named, else what lies in the log directory, else the only job that runs.
std::string find_pod_directory(const Request& request, const Environ& environment) {
  std::vector<launcher::JobEntry> jobs;
  if (!request.log_dir_given) jobs = launcher::list_jobs(launcher::run_directories(environment, ::geteuid()));
  const bool runs = std::any_of(jobs.begin(), jobs.end(), [&](const launcher::JobEntry& job) {
    return request.job == job.pod || request.job == job.job_id;
  });
  const auto pod = runs ? std::nullopt : launcher::find_pod(request.log_dir, request.job);
  if (pod) return request.log_dir + "/" + *pod;
  if (runs || (!jobs.empty() && !request.job)) {
    const launcher::JobEntry job = launcher::select_job(jobs, request.job);
    return job.log_dir + "/" + job.pod;
  }
  throw Error(ErrorKind::host,
              "there are no logs" + (request.job ? " of job " + printable(*request.job) : std::string()) +
                  " in " + printable(request.log_dir),
              "name the directory of the logs with --log_dir");
}

}  // namespace

int run_logs_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("logs", arguments, kLogsFlags);
  if (words.has("help")) {
    LaunchLog(STDOUT_FILENO, launcher::LogLevel::info).raw(kLogsUsage + describe_flags(kLogsFlags));
    return 0;
  }
  Request request = read_request(words, environment);
  request.logs.pod_directory = find_pod_directory(request, environment);
  request.logs.output = STDOUT_FILENO;
  request.logs.colour = launcher::use_colour(request.colour, ::isatty(STDOUT_FILENO) == 1, environment);
  launcher::show_logs(request.logs);
  return 0;
}

}  // namespace fleetrun::cli
