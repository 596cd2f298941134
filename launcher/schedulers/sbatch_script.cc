// The shape of the script, and why:
// - fleetrun runs in the background of the shell, since a shell acts on a signal only when its command has
//   ended, and the notice before the end of the time (--signal=B:…) goes to the shell alone.
// - `wait` returns early when the notice comes; a second one returns the status that fleetrun ended with.
// - Who gets Slurm's TERM depends on its ProctrackType:
//   with cgroups the shell alone, else everybody below it.
// - A job that was cancelled is not put back into the queue, though fleetrun may have ended with 75 then too.
#include "launcher/schedulers/sbatch_script.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::string_view kHead = R"(#
# Change what you like. Lines that begin with #SBATCH are for sbatch: it stops looking at the first command.
)";

constexpr std::string_view kRun = R"(
# Slurm's notice: fleetrun hands it to all hosts, the processes get SIGTERM and the time that --grace gives
# them, and fleetrun ends with 75, which says: start me again. TERM, of scancel or a preemption, means the
# same to it, and may come from Slurm itself too: told twice is told once.
fleetrun=
told=
trap 'told=USR1; [ -z "$fleetrun" ] || kill -USR1 "$fleetrun" 2>/dev/null' USR1
trap 'told=TERM; [ -z "$fleetrun" ] || kill -TERM "$fleetrun" 2>/dev/null' TERM

# In the background: a shell acts on a signal only when the command in its foreground has ended. In a process
# group of its own (-m): where one signal ends fleetrun and interrupts `wait` at once, bash 5.2 loses the
# status.
set -m
"${command[@]}" &
fleetrun=$!
[ -z "$told" ] || kill -"$told" "$fleetrun" 2>/dev/null  # it came before there was anybody to tell

while
  told=
  wait "$fleetrun"
  status=$?
  [ -n "$told" ]  # a signal ends `wait` early
do :; done
)";

constexpr std::string_view kRequeue = R"sh(
# Only a job that still runs is put back into the queue: one that was cancelled has to stay away. One task of
# an array has the number of the array for its own, which would mean all of its tasks.
job=$SLURM_JOB_ID
[ -z "$SLURM_ARRAY_JOB_ID" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
if [ "$status" -eq 75 ] && [ "$(squeue --noheader --jobs="$job" --format=%T | sort -u)" = RUNNING ]; then
  echo "fleetrun asks to be started again (exit status 75): job $job goes back into the queue" >&2
  scontrol requeue "$job"
fi
)sh";

bool is_plain(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._:,=+@%/-[]*&|!()").find(c) != std::string_view::npos;
  });
}

class Script {
 public:
  void comment(std::string_view text) { text_.append("# ").append(text).append("\n"); }

  void option(std::string_view name, std::string_view value) {
    if (!is_plain(value))
      throw Error(ErrorKind::usage,
                  "--" + std::string(name) + " is '" + printable(value) +
                      "': sbatch could not read that from a script",
                  "leave out blanks and quotes");
    text_.append("#SBATCH --").append(name).append("=").append(value).append("\n");
  }

  void spec(std::string_view name, const std::optional<std::string>& value) {
    if (value) option(name, *value);
  }

  void line(std::string_view text) { text_.append(text).append("\n"); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write_options(const SbatchSpec& spec, Script& script) {
  script.option("job-name", spec.name);
  script.option("nodes", spec.nodes);
  script.comment("One agent of fleetrun on each node; it starts the processes there itself.");
  script.option("ntasks-per-node", "1");
  script.spec("cpus-per-task", spec.cpus_per_node);
  script.spec("gpus-per-node", spec.gpus_per_node);
  script.spec("mem", spec.mem);
  script.spec("partition", spec.partition);
  script.spec("account", spec.account);
  script.spec("qos", spec.qos);
  script.spec("time", spec.time);
  script.comment("USR1 to this script " + std::to_string(spec.notice_seconds) +
                 " seconds before the time is up (Slurm may be up to a minute early).");
  script.option("signal", "B:USR1@" + std::to_string(spec.notice_seconds));
  if (spec.requeue) {
    script.comment(
        "The job may be started again, by Slurm after a lost node and by the end of this script, and then "
        "its");
    script.comment("output goes on where it stopped.");
    script.line("#SBATCH --requeue");
  } else {
    script.line("#SBATCH --no-requeue");
  }
  script.option("open-mode", "append");
  script.spec("output", spec.output);
  for (const std::string& option : spec.options) {
    if (!option.starts_with("-") || !is_plain(option))
      throw Error(ErrorKind::usage,
                  "--sbatch is '" + printable(option) + "': an option of sbatch's is needed",
                  "write it as --sbatch=--exclusive; leave out blanks and quotes");
    script.line("#SBATCH " + option);
  }
}

}  // namespace

bool is_slurm_time(std::string_view text) noexcept {
  if (text == "UNLIMITED" || text == "INFINITE") return true;
  const std::size_t dash = text.find('-');
  const bool days = dash != std::string_view::npos;
  const auto is_number = [](std::string_view part) {
    return !part.empty() && part.size() <= 9 &&
           std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (days && !is_number(text.substr(0, dash))) return false;
  const std::vector<std::string> parts = split(days ? text.substr(dash + 1) : text, ':');
  return !parts.empty() && parts.size() <= 3 && std::all_of(parts.begin(), parts.end(), is_number);
}

std::string sbatch_script(const SbatchSpec& spec) {
  if (spec.time && !is_slurm_time(*spec.time))
    throw Error(ErrorKind::usage, "--time is '" + printable(*spec.time) + "': a time of Slurm's is needed",
                "write minutes, H:M:S, or D-H:M:S");
  Script script;
  script.line("#!/bin/bash");
  script.comment("Made by: " + printable(spec.made_by, 4000));
  script.line(std::string(kHead.substr(0, kHead.size() - 1)));
  write_options(spec, script);
  script.line("");
  script.line("command=(");
  script.line("  " + shell_quoted(spec.fleetrun));
  for (const std::string& argument : spec.arguments) script.line("  " + shell_quoted(argument));
  script.line(")");
  script.line(kRun.substr(0, kRun.size() - 1));
  if (spec.requeue) script.line(kRequeue.substr(0, kRequeue.size() - 1));
  script.line("exit \"$status\"");
  return script.take();
}

}  // namespace fleetrun::launcher
