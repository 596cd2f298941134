// The processes of the job write their timelines into a folder beside the one that comes out
// (FLEETRUN_TRACE), from their first batch on; whichever way the job ends,
// fleetrun-trace joins what is there.
#include "cli/trace_command.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/command_flags.h"
#include "cli/launch.h"
#include "cli/options.h"
#include "cli/own_program.h"
#include "cli/scheduler_arguments.h"
#include "launcher/config/job_file_roles.h"
#include "launcher/config/make_job_config.h"
#include "launcher/config/read_job_file.h"
#include "launcher/model/job_config.h"
#include "launcher/plan/attempt_overlay.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

constexpr CommandFlag kTraceFlags[] = {
    {"out", 'o', "FILE", "where the timeline goes; default: trace.json"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kTraceUsage =
    R"(usage: fleetrun trace [-o FILE] [FLAGS OF FLEETRUN] SCRIPT [ARGUMENTS]
       fleetrun trace merge FOLDER [-o FILE]

Runs a job as fleetrun itself does, and draws what the time of its processes goes into: reading and parsing,
pulling rows, each operator, pushing gradients, averaging, waiting. At the end, however it comes, the
timelines of all processes are joined into one file, which https://ui.perfetto.dev opens,
and a table says what took the most.

Drawn are passes of train_from_dataset and infer_from_dataset, steps of Executor.run where a program is
trained, and parameter servers. `merge` joins timelines
that a job wrote into a folder because FLEETRUN_TRACE named it.

examples:
  fleetrun trace --server_num=1 --trainer_num=2 train.py
  fleetrun trace -o slow.json -- --nproc_per_node=4 train.py --epochs=1
  FLEETRUN_TRACE=/shared/t fleetrun --hosts h1,h2 train.py; fleetrun trace merge /shared/t

)";

OwnProgram trace_program() {
  return {"fleetrun-trace", "fleetrun trace", "its engine"};
}

/// Where the processes write; removed at the end, unless it is kept.
class PartsFolder {
 public:
  /// Beside `out`. Throws: Error(usage) where nothing can be written there.
  explicit PartsFolder(const std::string& out) {
    std::error_code ignored;
    std::string path = std::filesystem::absolute(out, ignored).string() + ".parts-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      throw Error(ErrorKind::usage,
                  "no timeline can be written to " + printable(out) + ": " + std::strerror(errno),
                  "name a file with -o whose folder is there and may be written to");
    path_ = path;
  }
  ~PartsFolder() {
    std::error_code ignored;
    if (!is_kept_) std::filesystem::remove_all(path_, ignored);
  }
  PartsFolder(const PartsFolder&) = delete;
  PartsFolder& operator=(const PartsFolder&) = delete;

  const std::string& path() const noexcept { return path_; }
  bool is_empty() const {
    std::error_code ignored;
    return std::filesystem::is_empty(path_, ignored);
  }
  void keep() noexcept { is_kept_ = true; }

 private:
  std::string path_;
  bool is_kept_ = false;
};

launcher::JobConfig config_of(const std::vector<std::string>& words, const Environ& environment) {
  const CommandLine line = parse_command_line(words);
  if (!line.options.script)
    throw Error(ErrorKind::usage, "no script is given",
                "write it last, for example: fleetrun trace --nproc_per_node=2 train.py");
  launcher::Options options = line.options;
  if (launcher::is_job_file(*options.script))
    launcher::apply_job_file(launcher::read_job_file(*options.script), options);
  launcher::JobConfig config = launcher::make_job_config(options, environment);
  if (config.host_list.given())
    throw Error(
        ErrorKind::usage, "fleetrun trace draws the processes of this host, and --hosts names others",
        "let FLEETRUN_TRACE name a folder that all hosts share, and join it with fleetrun trace merge");
  if (config.detach)
    throw Error(
        ErrorKind::usage, "fleetrun trace waits for the job's end, and --detach does not",
        "leave out --detach, or let FLEETRUN_TRACE name a folder and join it with fleetrun trace merge");
  return config;
}

int run_traced(launcher::JobConfig config, const std::string& out, const Environ& environment) {
  const std::string program = find_own_program(trace_program());
  PartsFolder parts(out);
  config.trace = parts.path();
  const int status = launch(config, environment);
  if (parts.is_empty()) {
    if (status != 0) return status;
    throw Error(ErrorKind::data, "no process of the job wrote a timeline",
                "train_from_dataset, infer_from_dataset, Executor.run and parameter servers of the fleetrun "
                "package do");
  }
  const int merged =
      run_own_program(trace_program(), program, {"merge", parts.path(), "-o", out}, environment);
  if (merged != 0) parts.keep();
  return status != 0 ? status : merged;
}

}  // namespace

int run_trace_command(const std::vector<std::string>& arguments, const Environ& environment) {
  if (!arguments.empty() && arguments.front() == "merge")
    execute_own_program(trace_program(), find_own_program(trace_program()), arguments);
  const LaunchArguments words = split_launch_arguments("trace", arguments, kTraceFlags);
  if (arguments.empty() || words.own.has("help")) return print(kTraceUsage + describe_flags(kTraceFlags));
  launcher::JobConfig config = config_of(words.launch, environment);
  if (config.dry_run != launcher::DryRun::no) {
    config.trace = launcher::kKnownAtStart;
    return launch(config, environment);
  }
  return run_traced(config, words.own.value("out").value_or("trace.json"), environment);
}

}  // namespace fleetrun::cli
