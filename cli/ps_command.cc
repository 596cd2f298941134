#include "cli/ps_command.h"

#include <poll.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <optional>

#include "cli/job_choice.h"
#include "cli/job_stream.h"
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

constexpr const char* kResizeHelp = R"(usage: fleetrun ps resize N [--job JOB]

Has N processes serve the parameter servers of a running job that was started with --server_num=N:MOST. It has
MOST servers all the time; processes that are needed start, servers move to where they belong while the
trainers go on, and processes that have none left end. Says how far it is, and returns when it is done.

A trainer waits for a server that moves for some milliseconds; no push is lost or applied twice. When a
process is killed meanwhile, it is started again and the move goes on.

example: fleetrun ps resize 5
)";

int processes_of(const std::vector<std::string>& words) {
  std::optional<std::int64_t> wanted;
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string word = words[i];
    for (const std::string flag : {"--server_num=", "--server-num="})
      if (word.starts_with(flag)) word.erase(0, flag.size());
    const auto number = parse_integer(word);
    if (wanted || !number || *number < 1 || *number > INT_MAX)
      throw Error(ErrorKind::usage,
                  "resize takes one number of processes, from 1, and '" + printable(words[i]) + "' is " +
                      (wanted ? "one more" : "none"),
                  "fleetrun ps resize 5");
    wanted = *number;
  }
  if (!wanted)
    throw Error(ErrorKind::usage, "resize needs the number of processes that are to serve the servers",
                "fleetrun ps resize 5");
  return static_cast<int>(*wanted);
}

void say(const std::string& text) {
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

/// Asks, and shows what the job says about it until it answers.
int resize(const std::vector<std::string>& words, const launcher::JobEntry& job) {
  const int processes = processes_of(words);
  launcher::ControlClient client(job);
  client.send(R"({"request":"attach"})");
  client.send(R"({"request":"resize","servers":)" + std::to_string(processes) + "}");
  int answers = 0;
  for (;;) {
    while (const std::optional<std::string> line = client.next_line()) {
      if (const auto event = parse_streamed(*line)) {
        if (event->type == "servers_move" && !event->text.empty()) say(event->text);
        continue;
      }
      if (++answers < 2) continue;  // the first is the status
      launcher::check_answer(*line);
      return 0;
    }
    pollfd readable{client.descriptor(), POLLIN, 0};
    ::poll(&readable, 1, -1);
    if (!client.read_more())
      throw Error(ErrorKind::network, name_of(job) + " ended before its servers had moved");
  }
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
  const JobArguments words = split_job_arguments(arguments);
  if (!words.rest.empty() && words.rest.front() == "resize") {
    if (words.needs_job) return resize(words.rest, choose_job("ps resize", words.job, environment));
    std::fputs(kResizeHelp, stdout);
    return 0;
  }
  const std::string path = find_own_program(program);
  std::vector<std::string> all;
  if (words.needs_job) all = server_flags(choose_job("ps", words.job, environment));
  all.insert(all.end(), words.rest.begin(), words.rest.end());
  execute_own_program(program, path, all);
}

}  // namespace fleetrun::cli
