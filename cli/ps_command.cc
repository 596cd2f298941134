#include "cli/ps_command.h"

#include <unistd.h>

#include "cli/job_choice.h"
#include "cli/own_program.h"
#include "launcher/status/control_client.h"
#include "launcher/status/job_status_json.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

/// Where the servers of the job are, as flags of fleetrun-ps.
std::vector<std::string> server_flags(const launcher::JobEntry& job) {
  launcher::ControlClient client(job);
  const launcher::JobStatus status =
      launcher::job_status_from_json(launcher::status_in(client.ask(R"({"request":"status"})")));
  if (status.servers.empty())
    throw Error(ErrorKind::usage, name_of(job) + " has no parameter servers",
                "fleetrun ps is for jobs that were started with --server_num or --servers");
  std::vector<std::string> flags{"--endpoints=" + join(status.servers, ",")};
  const std::string secret = job.directory + "/" + job.pod + ".secret";
  flags.push_back(::access(secret.c_str(), F_OK) == 0 ? "--secret_file=" + secret : "--insecure");
  return flags;
}

}  // namespace

JobArguments split_job_arguments(const std::vector<std::string>& arguments) {
  JobArguments words;
  bool has_command = false, flags_are_over = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    flags_are_over = flags_are_over || word == "--";
    const bool is_job = !flags_are_over && (word == "--job" || word.starts_with("--job="));
    if (is_job) {
      if (!words.job.empty()) throw Error(ErrorKind::usage, "--job is there twice");
      if (word == "--job" && i + 1 == arguments.size())
        throw Error(ErrorKind::usage, "--job needs a value", "a pod or a job id; fleetrun status lists them");
      words.job.push_back(word == "--job" ? arguments[++i] : word.substr(6));
      continue;
    }
    if (!flags_are_over && (word == "--help" || word == "-h" || word.starts_with("--endpoints")))
      words.needs_job = false;
    if (!has_command && word == "help") words.needs_job = false;
    has_command = has_command || !word.starts_with('-');
    words.rest.push_back(word);
  }
  if (!has_command) words.needs_job = false;
  return words;
}

int run_ps_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const OwnProgram program{"fleetrun-ps", "fleetrun ps", "the parameter server"};
  const std::string path = find_own_program(program);
  const JobArguments words = split_job_arguments(arguments);
  std::vector<std::string> all;
  if (words.needs_job) all = server_flags(choose_job("ps", words.job, environment));
  all.insert(all.end(), words.rest.begin(), words.rest.end());
  execute_own_program(program, path, all);
}

}  // namespace fleetrun::cli
