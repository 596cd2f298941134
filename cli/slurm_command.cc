// The words of `fleetrun slurm`; launcher/schedulers/sbatch_script writes the script. Slurm's programs are
// run, and nothing of it is linked.
#include "cli/slurm_command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "cli/command_flags.h"
#include "cli/launch.h"
#include "cli/scheduler_arguments.h"
#include "launcher/schedulers/sbatch_script.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"
#include "runtime/base/write_all.h"

namespace fleetrun::cli {
namespace {

constexpr std::size_t kLongestName = 60;

constexpr CommandFlag kSlurmFlags[] = {
    {"nodes", 'N', "N|MIN-MAX", "hosts to ask for; default: --nnodes, or 1"},
    {"time", 0, "TIME", "limit: minutes, H:M:S or D-H:M:S"},
    {"partition", 0, "NAME", "partition"},
    {"account", 0, "NAME", "account"},
    {"qos", 0, "NAME", "quality of service"},
    {"gpus_per_node", 0, "[TYPE:]N", "GPUs on each host; one trainer each"},
    {"cpus_per_node", 0, "N", "cores on each host"},
    {"mem", 0, "SIZE", "memory on each host, for example 64G"},
    {"job_name", 0, "NAME", "default: made of the script's name"},
    {"output", 0, "FILE", "where fleetrun's own output goes; default: slurm-JOB.out"},
    {"notice", 0, "SECONDS", "before the time limit the job is stopped; default: --grace and 30 more"},
    {"no_requeue", 0, "", "do not start the job again when its time was up or a host was lost"},
    {"sbatch", 0, "OPTION", "one more option of sbatch's, for example --sbatch=--exclusive; again for others",
     true},
    {"submit", 0, "", "hand the script to sbatch instead of printing it"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kUsage = R"(usage: fleetrun slurm [FLAGS] [FLAGS OF FLEETRUN] SCRIPT [ARGUMENTS]

Prints a batch script that runs this launch over the hosts of a Slurm allocation, or submits it. Inside of it,
fleetrun starts one agent per host through srun; --nproc_per_node, or the GPUs of a host, say how many
trainers that one starts. Shortly before the time is up the processes are told to stop (SIGTERM, then
--grace), fleetrun ends with 75, and the job goes back into the queue.

examples:
  fleetrun slurm --nodes=4 --gpus-per-node=8 --time=12:00:00 train.py       print the script
  fleetrun slurm --nodes=2 --time=30 --submit --nproc_per_node=4 train.py   submit it

)";

std::string own_path() {
  std::string path(4096, '\0');
  const ssize_t length = check_errno(static_cast<int>(::readlink("/proc/self/exe", path.data(), path.size())),
                                     "readlink", "finding fleetrun");
  path.resize(static_cast<std::size_t>(length));
  return path;
}

/// "2:16" → "2-16", as sbatch writes a range.
std::string nodes_of(const launcher::NodeCount& count) {
  return count.min == count.max ? std::to_string(count.max)
                                : std::to_string(count.min) + "-" + std::to_string(count.max);
}

/// Enough for the longest grace, and for Slurm's clock.
int standard_notice(const launcher::JobConfig& config) {
  std::chrono::milliseconds longest = config.grace.all;
  for (const auto& [role, grace] : config.grace.roles) longest = std::max(longest, grace);
  return static_cast<int>(std::min<std::int64_t>(longest.count() / 1000 + 30, 65'535));
}

launcher::SbatchSpec read_spec(const SchedulerArguments& words, const std::vector<std::string>& arguments) {
  launcher::SbatchSpec spec;
  spec.name = words.own.value("job_name").value_or(name_of_script(words.config.script, kLongestName));
  spec.nodes = words.own.value("nodes").value_or(nodes_of(words.config.rendezvous.nodes));
  spec.time = words.own.value("time");
  spec.partition = words.own.value("partition");
  spec.account = words.own.value("account");
  spec.qos = words.own.value("qos");
  spec.gpus_per_node = words.own.value("gpus_per_node");
  spec.cpus_per_node = words.own.value("cpus_per_node");
  spec.mem = words.own.value("mem");
  spec.output = words.own.value("output");
  spec.options = words.own.values("sbatch");
  spec.notice_seconds = whole_number(words.own, "notice", 1).value_or(standard_notice(words.config));
  if (spec.notice_seconds > 65'535)
    throw Error(ErrorKind::usage,
                "--notice is '" + std::to_string(spec.notice_seconds) + "': Slurm takes 65535 at most");
  spec.requeue = !words.own.has("no_requeue");
  spec.fleetrun = own_path();
  spec.arguments = words.launch;
  spec.made_by = "fleetrun slurm";
  for (const std::string& argument : arguments) spec.made_by.append(" ").append(shell_quoted(argument));
  return spec;
}

::pid_t start_sbatch(int input, const Environ& environment) {
  std::vector<std::string> entries = environment.entries();
  std::vector<char*> variables;
  for (std::string& entry : entries) variables.push_back(entry.data());
  variables.push_back(nullptr);
  ::posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawnattr_t attributes;  // fleetrun ignores SIGPIPE, and sbatch would inherit that
  ::posix_spawnattr_init(&attributes);
  sigset_t usual;
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  char name[] = "sbatch";
  char* const argv[] = {name, nullptr};
  ::pid_t child = 0;
  const int error = ::posix_spawnp(&child, name, &actions, &attributes, argv, variables.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw Error(
        ErrorKind::host, std::string("sbatch cannot be started: ") + std::strerror(error),
        "run this where Slurm's commands are, or leave --submit out and hand the script to sbatch there");
  return child;
}

/// Gives `script` to sbatch on its standard input. Returns its exit status;
/// what it says goes to the terminal.
int submit(const std::string& script, const Environ& environment) {
  int ends[2];
  check_errno(::pipe2(ends, O_CLOEXEC), "pipe2", "starting sbatch");
  UniqueFd reading(ends[0]), writing(ends[1]);
  const ::pid_t child = start_sbatch(reading.value(), environment);
  reading.reset();
  write_all(writing.value(), script);
  writing.reset();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int run_slurm_command(const std::vector<std::string>& arguments, const Environ& environment) {
  const SchedulerArguments words = parse_scheduler_arguments("slurm", "Slurm", arguments, kSlurmFlags);
  if (words.own.has("help")) return print(kUsage + describe_flags(kSlurmFlags));
  const std::string script = launcher::sbatch_script(read_spec(words, arguments));
  return words.own.has("submit") ? submit(script, environment) : print(script);
}

}  // namespace fleetrun::cli
