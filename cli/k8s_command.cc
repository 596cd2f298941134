// The words of `fleetrun k8s`; launcher/schedulers/manifest writes the manifests.
// Nothing is asked of a cluster.
#include "cli/k8s_command.h"

#include <algorithm>
#include <chrono>

#include "cli/command_flags.h"
#include "cli/launch.h"
#include "cli/scheduler_arguments.h"
#include "launcher/schedulers/manifest.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/secure/secret.h"

namespace fleetrun::cli {
namespace {

constexpr std::size_t kLongestName = 40;  // leaves room for what Kubernetes and JobSet add
constexpr int kMaxPods = 65'536;

constexpr CommandFlag kK8sFlags[] = {
    {"image", 0, "IMAGE", "container image with fleetrun, the script and what it needs"},
    {"nodes", 'N', "N", "pods; default: --nnodes, or 1"},
    {"kind", 0, "KIND", "job (an Indexed Job, the default) or jobset (a JobSet)"},
    {"server_nodes", 0, "N", "of a JobSet: pods that only serve, beside --nodes that only train"},
    {"name", 0, "NAME", "default: made of the script's name"},
    {"namespace", 0, "NAME", "default: kubectl's"},
    {"gpus_per_node", 0, "N", "GPUs of each pod; one trainer each"},
    {"cpu", 0, "N", "cores of each pod, for example 8 or 500m"},
    {"memory", 0, "SIZE", "memory of each pod, for example 64Gi"},
    {"port", 0, "PORT", "where pods meet; default: 6768"},
    {"secret_name", 0, "NAME",
     "a Secret that is there already, with a key named secret; default: a new one is printed"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kUsage =
    R"(usage: fleetrun k8s --image=IMAGE [FLAGS] [FLAGS OF FLEETRUN] SCRIPT [ARGUMENTS]

Prints manifests that run this launch in Kubernetes, one fleetrun per pod: for kubectl apply -f -. The pods
meet at the first one; a pod that is preempted, or ends with 75, is replaced, and one that fleetrun itself
refuses fails the job at once.

examples:
  fleetrun k8s --image=registry/train:1 --nodes=4 --gpus_per_node=8 train.py
  fleetrun k8s --image=registry/train:1 --nnodes=2:16 train.py               elastic: goes on with 2 pods
  fleetrun k8s --image=registry/rec:1 --kind=jobset --server_nodes=2 --nodes=4 --server_num=1 --trainer_num=2
  train.py

)";

[[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) {
  throw Error(ErrorKind::usage, what, hint);
}

/// Takes `--NAME VALUE` or `--NAME=VALUE` out of fleetrun's flags, which end where the script begins.
bool take_flag(SchedulerArguments& words, std::string_view name) {
  const auto end = words.launch.end() - static_cast<std::ptrdiff_t>(1 + words.config.script_args.size());
  for (auto word = words.launch.begin(); word != end; ++word) {
    if (!word->starts_with("--")) continue;
    std::string written = word->substr(0, word->find('='));
    std::replace(written.begin() + 2, written.end(), '-', '_');
    if (written != "--" + std::string(name)) continue;
    words.launch.erase(word, word + (word->find('=') == std::string::npos ? 2 : 1));
    return true;
  }
  return false;
}

/// --nnodes among fleetrun's own flags is --nodes, and is said to the pods once.
launcher::NodeCount nodes_of(SchedulerArguments& words) {
  const auto nodes = whole_number(words.own, "nodes", 1);
  launcher::NodeCount count = words.config.rendezvous.nodes;
  const bool given = take_flag(words, "nnodes");
  if (nodes && given && count.max != *nodes)
    refuse("--nodes is " + std::to_string(*nodes) + ", and --nnodes is " + std::to_string(count.max),
           "leave one of them out");
  if (nodes && !given) count = {*nodes, *nodes, 1};
  if (count.max > kMaxPods) refuse("--nodes is " + std::to_string(count.max) + ": these are too many pods");
  return count;
}

launcher::ManifestKind kind_of(const CommandArguments& words) {
  const std::string kind = words.value("kind").value_or("job");
  if (kind == "job") return launcher::ManifestKind::job;
  if (kind == "jobset") return launcher::ManifestKind::jobset;
  refuse("--kind is '" + printable(kind) + "': job or jobset is needed");
}

std::int64_t longest_grace(const launcher::JobConfig& config) {
  std::chrono::milliseconds longest = config.grace.all;
  for (const auto& [role, grace] : config.grace.roles) longest = std::max(longest, grace);
  return longest.count() / 1000;
}

void check_launch(const SchedulerArguments& words, const launcher::ManifestSpec& spec) {
  const launcher::JobConfig& config = words.config;
  if (config.rendezvous.secret_file)
    refuse("--secret_file is the manifest's to say", "use --secret_name=NAME for a Secret");
  if (config.rendezvous.node_rank >= 0) refuse("--rank is the pod's to say", "leave it out");
  if (spec.server_nodes > 0 && config.mode != Mode::ps)
    refuse("--server_nodes is given, and the job is not a parameter-server job",
           "add --server_num=1 --trainer_num=1");
}

launcher::ManifestSpec read_spec(SchedulerArguments words, const std::vector<std::string>& arguments) {
  launcher::ManifestSpec spec;
  spec.kind = kind_of(words.own);
  spec.name = words.own.value("name").value_or(name_of_script(words.config.script, kLongestName));
  spec.image = words.own.value("image").value_or("");
  if (spec.image.empty())
    refuse("no image is given", "--image=IMAGE names one with fleetrun, the script and what it needs");
  spec.name_space = words.own.value("namespace");
  spec.nodes = nodes_of(words);
  spec.server_nodes = whole_number(words.own, "server_nodes", 1).value_or(0);
  spec.cpu = words.own.value("cpu");
  spec.memory = words.own.value("memory");
  spec.gpus = whole_number(words.own, "gpus_per_node", 1);
  spec.secret_name = words.own.value("secret_name");
  const int port = whole_number(words.own, "port", 1).value_or(spec.port);
  if (port > 65'535) refuse("--port is '" + std::to_string(port) + "': ports end with 65535");
  spec.port = static_cast<std::uint16_t>(port);
  check_launch(words, spec);
  if (spec.server_nodes > 0) {
    for (const char* name : {"server_num", "trainer_num", "worker_num"}) take_flag(words, name);
    spec.servers_of_node = words.config.server_num.value_or(1);
    spec.trainers_of_node = words.config.trainer_num.value_or(1);
  }
  const std::size_t program = 1 + words.config.script_args.size();
  spec.flags.assign(words.launch.begin(), words.launch.end() - static_cast<std::ptrdiff_t>(program));
  spec.program.assign(words.launch.end() - static_cast<std::ptrdiff_t>(program), words.launch.end());
  spec.grace_seconds = longest_grace(words.config);
  spec.join_seconds = words.config.rendezvous.join_timeout.count() / 1000;
  spec.made_by = "fleetrun k8s";
  for (const std::string& argument : arguments) spec.made_by.append(" ").append(shell_quoted(argument));
  return spec;
}

}  // namespace

int run_k8s_command(const std::vector<std::string>& arguments, const Environ&) {
  SchedulerArguments words = parse_scheduler_arguments("k8s", "Kubernetes", arguments, kK8sFlags);
  if (words.own.has("help")) return print(kUsage + describe_flags(kK8sFlags));
  launcher::ManifestSpec spec = read_spec(std::move(words), arguments);
  const Secret secret = Secret::random();
  spec.secret = secret.bytes();
  return print(launcher::manifest(spec));
}

}  // namespace fleetrun::cli
