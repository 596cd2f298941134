// What the entries say is enough: a fleetrun that is stopped (SIGSTOP) is listed like any other.
#include "cli/list_command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "cli/command_flags.h"
#include "cli/job_choice.h"
#include "cli/status_text.h"
#include "cli/table_text.h"
#include "launcher/host/run_directory.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

constexpr CommandFlag kListFlags[] = {
    {"json", 0, "", "a line of JSON per job, for programs"},
    {"names", 0, "", "job ids and pods alone, one a line"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kListHelp = R"(usage: fleetrun list [--json | --names]

Lists your jobs that run on this host, the oldest first. status, logs, attach and stop take a JOB or a POD.

)";

std::vector<std::string> cells_of(const launcher::JobEntry& job, std::int64_t now) {
  return {printable(job.job_id),
          printable(job.pod),
          printable(job.mode),
          std::to_string(job.processes),
          std::to_string(job.pid),
          short_time(static_cast<double>(std::max<std::int64_t>(now - job.began_at, 0)) / 1e9),
          printable(job.log_dir)};
}

std::string table_of(const std::vector<launcher::JobEntry>& jobs) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  Table table = {{"JOB", "POD", "MODE", "PROCESSES", "PID", "TIME", "LOGS"}};
  for (const launcher::JobEntry& job : jobs) table.push_back(cells_of(job, now));
  return table_text(table, "");
}

std::string json_of(const std::vector<launcher::JobEntry>& jobs) {
  std::string text;
  for (const launcher::JobEntry& job : jobs) text += launcher::to_json(job);
  return text;
}

std::string names_of(const std::vector<launcher::JobEntry>& jobs) {
  std::set<std::string> names;  // several jobs may have one id
  for (const launcher::JobEntry& job : jobs) names.insert({job.job_id, job.pod});
  std::string text;
  for (const std::string& name : names) text += printable(name) + "\n";
  return text;
}

}  // namespace

int run_list_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("list", arguments, kListFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kListHelp + describe_flags(kListFlags));
    return 0;
  }
  if (!words.words.empty())
    throw Error(ErrorKind::usage, "fleetrun list takes no " + printable(words.words.front()),
                "fleetrun status " + printable(words.words.front()) + " shows one job");
  const auto jobs = launcher::list_jobs(launcher::run_directories(environment, ::geteuid()));
  if (words.has("json"))
    write_text(STDOUT_FILENO, json_of(jobs));
  else if (words.has("names"))
    write_text(STDOUT_FILENO, names_of(jobs));
  else if (jobs.empty())
    write_text(STDERR_FILENO, "no job of this user runs on this host\n");
  else
    write_text(STDOUT_FILENO, table_of(jobs));
  return 0;
}

}  // namespace fleetrun::cli
