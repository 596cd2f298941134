#include "cli/export_command.h"

#include <unistd.h>

#include "cli/command_flags.h"
#include "cli/job_choice.h"
#include "cli/package_program.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

constexpr CommandFlag kExportFlags[] = {
    {"tensorboard", 0, "DIR", "write files for TensorBoard below DIR (package tensorboard)"},
    {"otlp", 0, "URL", "send metrics and traces to this collector (opentelemetry-exporter-otlp-proto-http)"},
    {"follow", 'f', "", "go on until the job ends"},
    {"events", 0, "DIR", "the folder that FLEETRUN_EVENTS named for the job, instead of its trainers' logs"},
    {"log_dir", 0, "DIR", "where the logs are; default: log, or PADDLE_LOG_DIR"},
    {"python", 0, "PATH", "the interpreter that has the package; default: the one that a job would have"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kExportUsage =
    R"(usage: fleetrun export [--tensorboard DIR] [--otlp URL] [-f] [FLAGS] [JOB]

Gives a job that runs or ran to other tools: what its trainers fetched (loss, AUC), the batch, examples/s,
which processes run, restarts and failures. JOB is a pod or a job id; without it the newest in the log
directory, or the only job that runs.

Values are read from the logs of trainers whose train_from_dataset prints what it fetches, or from the files
that FLEETRUN_EVENTS had them write; only these tell examples/s.

examples:
  fleetrun export --tensorboard runs && tensorboard --logdir runs
  fleetrun export -f --otlp http://127.0.0.1:4318 night

)";

}  // namespace

int run_export_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const CommandArguments words = parse_command_arguments("export", arguments, kExportFlags);
  if (words.has("help")) {
    write_text(STDOUT_FILENO, kExportUsage + describe_flags(kExportFlags));
    return 0;
  }
  if (!words.has("tensorboard") && !words.has("otlp"))
    throw Error(ErrorKind::usage, "export has nowhere to go", "give --tensorboard=DIR, --otlp=URL or both");
  std::vector<std::string> program{choose_pod_directory("export", words, environment)};
  for (const char* flag : {"tensorboard", "otlp", "events"}) {
    if (const auto value = words.value(flag)) program.push_back("--" + std::string(flag) + "=" + *value);
  }
  if (words.has("follow")) program.emplace_back("--follow");
  execute_package_program("fleetrun export", "_export", words.value("python"), std::move(program),
                          environment);
}

}  // namespace fleetrun::cli
