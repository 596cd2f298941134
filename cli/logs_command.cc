// The words of `fleetrun logs`; what they choose is shown by launcher/logs/log_show.
#include "cli/logs_command.h"

#include <unistd.h>

#include "cli/command_flags.h"
#include "cli/job_choice.h"
#include "cli/launch_log.h"
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

Shows the logs of a job that runs or ran: of JOB, a pod name, a job id or a path in its log directory; without
it of the newest one in the log directory, or of the only job that runs.

)";

struct Request {
  std::optional<std::string> log_dir, job;
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

Request read_request(const CommandArguments& words) {
  Request request;
  if (words.words.size() > 1)
    refuse_lines("logs shows one job, and " + std::to_string(words.words.size()) + " are named");
  if (!words.words.empty()) request.job = words.words.front();
  request.log_dir = words.value("log_dir");
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

}  // namespace

int run_logs_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("logs", arguments, kLogsFlags);
  if (words.has("help")) {
    LaunchLog(STDOUT_FILENO, launcher::LogLevel::info).raw(kLogsUsage + describe_flags(kLogsFlags));
    return 0;
  }
  Request request = read_request(words);
  request.logs.pod_directory = choose_pod_directory(request.log_dir, request.job, environment);
  request.logs.output = STDOUT_FILENO;
  request.logs.colour = launcher::use_colour(request.colour, ::isatty(STDOUT_FILENO) == 1, environment);
  launcher::show_logs(request.logs);
  return 0;
}

}  // namespace fleetrun::cli
