#include "cli/report_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <system_error>

#include "cli/command_flags.h"
#include "cli/failure_screen.h"
#include "cli/job_choice.h"
#include "cli/launch_log.h"
#include "cli/own_program.h"
#include "launcher/host/run_directory.h"
#include "launcher/job/event_text.h"
#include "launcher/logs/log_catalog.h"
#include "launcher/logs/log_tail.h"
#include "launcher/record/job_report.h"
#include "launcher/record/recorder.h"
#include "launcher/record/replay.h"
#include "launcher/status/control_client.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"
#include "runtime/base/write_all.h"

namespace fleetrun::cli {
namespace {

using launcher::FlightRecord;
using launcher::Told;

constexpr CommandFlag kReportFlags[] = {
    {"output", 'o', "FILE", "where to write it; -: standard output; default: fleetrun-report.POD.json"},
    {"log_dir", 0, "DIR", "where the logs are; default: log, or PADDLE_LOG_DIR"},
    {"without_batches", 0, "", "leave out what trainers could not train on: it is training data"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kReportUsage = R"(usage: fleetrun report [FLAGS] [JOB]

Packs what is known of a job that runs or ran into one file of JSON: its command, plan, events, verdict, the
screen of its failure, the ends of its logs if it did not end well, the batch that a trainer could not train
on, the stacks of its processes if they run, the machine and its Python packages.
JOB is a pod or a job id; without it the newest in the log directory, or the only job that runs.

Secrets are taken out first: values of variables and flags whose names say token, secret, password, key or
credential, what follows such a word in a log, users in addresses, tokens of known shapes. Of the environment
only what fleetrun and the frameworks set is kept. Read the file before you give it away all the same.

)";

constexpr CommandFlag kReplayFlags[] = {
    {"quiet", 'q', "", "show only how it ended, and whether it is the same"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kReplayUsage = R"(usage: fleetrun replay [FLAGS] FILE

Goes through the job of a report again, event by event, on any machine: what was decided then is decided anew
from what happened, and compared. FILE is what fleetrun report wrote. No process of the job is started. The
batches that trainers could not train on are run again, without Python, and fail again.

Ends with 0 where decisions, verdict, screen and the failures of batches are those of then, with 1 where they
are not.

)";

constexpr std::size_t kLogBytes = 16'384;

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::usage, printable(path) + ": " + std::generic_category().message(errno));
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What process `pid` was started with; nothing where it is gone, or of somebody else.
Environ environment_of(pid_t pid) {
  Environ environment;
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) environment.set(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

/// Knows the secrets of this command, and of the job's processes as far as they live.
launcher::Redactor redactor_now(const FlightRecord& record, const Environ& environment) {
  launcher::Redactor redactor = launcher::job_redactor(record.opening.plan, environment, {});
  redactor.learn(environment_of(record.opening.fleetrun_pid));
  for (const launcher::RecordEntry& entry : record.entries) {
    const Told* told = std::get_if<Told>(&entry);
    const auto* started = told ? std::get_if<launcher::event::ProcessStarted>(&told->event) : nullptr;
    if (started) redactor.learn(environment_of(started->pid));
  }
  return redactor;
}

/// The ends of the newest logs of a job that has not ended its record.
std::vector<std::pair<std::string, std::string>> logs_now(const std::string& pod_directory,
                                                          const launcher::Redactor& redactor) {
  std::map<std::string, std::string> ends;
  for (const launcher::FoundLog& log : launcher::list_logs(pod_directory))
    ends[log.role + " " + std::to_string(log.rank)] =
        redactor.clean(launcher::log_tail(log.paths.back(), 0, kLogBytes));
  return {ends.begin(), ends.end()};
}

/// Of a job that can be found; one that does not answer has none.
std::string stacks_now(const FlightRecord& record, const launcher::Redactor& redactor,
                       const Environ& environment) {
  for (const launcher::JobEntry& entry :
       launcher::list_jobs(launcher::run_directories(environment, ::geteuid()))) {
    if (entry.pod != record.opening.plan.pod_name) continue;
    try {
      return redactor.clean(launcher::stacks_of(entry));
    } catch (const Error& error) {
      return std::string("they could not be read: ") + error.what();
    }
  }
  return {};
}

void write_report(const std::string& path, const std::string& text) {
  const UniqueFd file(open_own(path, O_WRONLY | O_CREAT | O_TRUNC, Readers::owner));
  if (!file || !write_all(file.value(), text))
    throw Error(ErrorKind::host, printable(path) + ": " + std::generic_category().message(errno),
                "-o FILE writes it elsewhere");
}

std::string since_the_start(const Told& told, const FlightRecord& record) {
  char text[32];
  std::snprintf(text, sizeof text, "%9.3f s  ",
                static_cast<double>(told.time.monotonic_ns - record.opening.began.monotonic_ns) / 1e9);
  return text;
}

/// One line for each event that people are told about.
class EventPrinter {
 public:
  EventPrinter(const FlightRecord& record, bool quiet)
      : record_(record), quiet_(quiet), text_(record.opening.plan) {}

  void operator()(const Told& told, const launcher::Plan&) {
    const std::string sentence = text_.on(told.event).text;
    if (!quiet_ && !sentence.empty())
      write_text(STDOUT_FILENO, since_the_start(told, record_) + sentence + "\n");
  }

 private:
  const FlightRecord& record_;
  const bool quiet_;
  launcher::EventText text_;
};

/// Another program's work, which has an engine. Returns whether they fail as they did.
bool run_failed_batches(const std::string& path, const std::string& report, const Environ& environment) {
  if (!launcher::has_batches(report)) return true;
  const OwnProgram program{"fleetrun-predict", "fleetrun replay", "its engine"};
  return run_own_program(program, find_own_program(program), {"--failed_batches", path}, environment) == 0;
}

}  // namespace

int run_report_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("report", arguments, kReportFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kReportUsage + describe_flags(kReportFlags));
    return 0;
  }
  const std::string directory = choose_pod_directory("report", words, environment);
  const std::string path = directory + "/" + launcher::kRecordName;
  if (::access(path.c_str(), R_OK) != 0)
    throw Error(
        ErrorKind::host,
        "there is no record of this job: " + printable(path) + ": " + std::generic_category().message(errno),
        "it could not be written then, or an older fleetrun ran the job");
  const std::string bytes = read_all(path);
  const FlightRecord record = launcher::parse_record(bytes);
  const launcher::Plan& plan = record.opening.plan;
  const launcher::Machine machine = launcher::this_machine(launcher::python_of(plan), environment);
  launcher::Beside beside;
  if (!record.end) {
    const launcher::Redactor redactor = redactor_now(record, environment);
    beside.logs = logs_now(directory, redactor);
    beside.stacks = stacks_now(record, redactor, environment);
  }
  if (!words.has("without_batches")) beside.batches = launcher::failed_batches(directory);
  const std::string text = launcher::to_report(bytes, machine, beside);
  const std::string output = words.value("output").value_or("fleetrun-report." + plan.pod_name + ".json");
  if (output == "-") {
    write_bytes(STDOUT_FILENO, text);
    return 0;
  }
  write_report(output, text);
  write_text(STDOUT_FILENO, output + "\n");
  return 0;
}

int run_replay_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("replay", arguments, kReplayFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kReplayUsage + describe_flags(kReplayFlags));
    return 0;
  }
  if (words.words.size() != 1)
    throw Error(ErrorKind::usage,
                "replay needs one file, and " + std::to_string(words.words.size()) + " are named",
                "fleetrun report writes one");
  const std::string& path = words.words.front();
  std::string report;
  const launcher::Replayed replayed = while_doing("replaying " + printable(path), [&] {
    report = read_all(path);
    const FlightRecord record = launcher::parse_record(launcher::record_in(report));
    const launcher::Replayed result =
        launcher::replay(record, failure_screen, EventPrinter(record, words.has("quiet")));
    const std::string& cause = result.report.cause;
    write_text(STDOUT_FILENO, (record.end ? "ended: " : "it ran when the report was made; so far: ") +
                                  std::string(to_string(result.report.outcome)) + ", exit status " +
                                  std::to_string(result.report.exit_status) +
                                  (cause.empty() ? "" : ": " + cause) + "\n" + result.screen);
    return result;
  });
  for (const std::string& difference : replayed.differences)
    write_text(STDOUT_FILENO, "differs: " + difference + "\n");
  const bool is_same = replayed.differences.empty();
  if (is_same)
    write_text(STDOUT_FILENO, "replayed " + std::to_string(replayed.decisions) +
                                  " decisions: the same ones, the same verdict and the same screen\n");
  const bool fails_the_same = run_failed_batches(path, report, environment);
  return is_same && fails_the_same ? 0 : 1;
}

}  // namespace fleetrun::cli
