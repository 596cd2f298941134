// The words of `fleetrun k8s`; launcher/schedulers/manifest writes the manifests.
// Nothing is asked of a cluster.
#include "cli/k8s_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "cli/command_flags.h"
#include "cli/launch.h"
#include "cli/scheduler_arguments.h"
#include "launcher/schedulers/manifest.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"
#include "runtime/base/version.h"
#include "runtime/secure/secret.h"

namespace fleetrun::cli {
namespace {

constexpr std::size_t kLongestName = 40;  // leaves room for what Kubernetes and JobSet add
constexpr int kMaxPods = 65'536;
/// The one of scripts/package image. None is published: a name without a registry would be asked of Docker's.
constexpr const char* kOwnImage = "localhost/fleetrun:" FLEETRUN_VERSION;

constexpr CommandFlag kK8sFlags[] = {
    {"image", 0, "IMAGE",
     "container image with fleetrun, the script and what it needs; default: localhost/fleetrun:VERSION"},
    {"nodes", 'N', "N", "pods; default: --nnodes, or 1"},
    {"kind", 0, "KIND", "job (an Indexed Job, the default), jobset, or trainjob (Kubeflow Trainer v2)"},
    {"server_nodes", 0, "N", "of a JobSet: pods that only serve, beside --nodes that only train"},
    {"name", 0, "NAME", "default: made of the script's name"},
    {"namespace", 0, "NAME", "default: kubectl's"},
    {"output", 0, "DIR", "write a base for kustomize into DIR, a file for each object, instead of printing"},
    {"gpus_per_node", 0, "N", "GPUs of each pod; one trainer each"},
    {"gpu_resource", 0, "NAME", "what nodes call a GPU; default: nvidia.com/gpu"},
    {"resource", 0, "NAME=N", "other devices of each pod, for example rdma/ib=1", true},
    {"cpu", 0, "N", "cores of each pod, for example 8 or 500m"},
    {"memory", 0, "SIZE", "memory of each pod, for example 64Gi"},
    {"shared_memory", 0, "SIZE", "size of /dev/shm; default: as much as the pod's memory"},
    {"env", 0, "NAME=VALUE", "variable of the pods", true},
    {"env_from", 0, "SOURCE", "secret:NAME or configmap:NAME, whose entries become variables", true},
    {"volume", 0, "VOLUME",
     "pvc:CLAIM:/PATH[:ro], configmap:NAME:/PATH, secret:NAME:/PATH, empty[:SIZE]:/PATH", true},
    {"image_pull_secret", 0, "NAME", "a Secret by which the image is fetched", true},
    {"image_pull_policy", 0, "POLICY", "Always, IfNotPresent or Never"},
    {"run_as", 0, "UID[:GID]", "user of the pods; default: 1000; image: the one of the image"},
    {"service_account", 0, "NAME", "default: the namespace's"},
    {"node_selector", 0, "KEY=VALUE", "label that nodes must have", true},
    {"toleration", 0, "TAINT", "KEY[=VALUE][:EFFECT], a taint of nodes that does not matter", true},
    {"spread", 0, "KEY[:must]", "spread the pods over the values of this label of nodes", true},
    {"priority_class", 0, "NAME", "which pods go first"},
    {"scheduler", 0, "NAME", "another scheduler than the cluster's own"},
    {"queue", 0, "NAME", "a LocalQueue of Kueue's, in which the job waits"},
    {"disruption_budget", 0, "", "while nodes are drained, keep as many pods as the job needs"},
    {"remove_after", 0, "SECONDS", "remove the job so long after its end; default: never"},
    {"metrics_port", 0, "PORT", "serve metrics there, and tell Prometheus"},
    {"label", 0, "KEY=VALUE", "label of all that is made", true},
    {"annotation", 0, "KEY=VALUE", "annotation of all that is made", true},
    {"port", 0, "PORT", "where pods meet; default: 6768"},
    {"secret_name", 0, "NAME",
     "a Secret that is there already, with a key named secret; default: a new one is printed"},
    {"help", 'h', "", "show this"},
};

constexpr const char* kUsage =
    R"(usage: fleetrun k8s [--image=IMAGE] [FLAGS] [FLAGS OF FLEETRUN] SCRIPT [ARGUMENTS]

Prints manifests that run this launch in Kubernetes, one fleetrun per pod: for kubectl apply -f -. The pods
meet at the first one; a pod that is preempted, or ends with 75, is replaced, and one that fleetrun itself
refuses fails the job at once. Namespaces under Pod Security "restricted" take them as they are.

examples:
  fleetrun k8s --image=registry/train:1 --nodes=4 --gpus_per_node=8 train.py
  fleetrun k8s --image=registry/train:1 --nnodes=2:16 train.py               elastic: goes on with 2 pods
  fleetrun k8s --image=registry/rec:1 --kind=jobset --server_nodes=2 --nodes=4 --server_num=1 --trainer_num=2
  train.py
  fleetrun k8s --image=registry/train:1 --nodes=4 --volume=pvc:data:/data:ro --output=base train.py
  fleetrun k8s --volume=pvc:scripts:/work train.py            in the image that scripts/package image makes

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
  if (kind == "trainjob") return launcher::ManifestKind::trainjob;
  refuse("--kind is '" + printable(kind) + "': job, jobset or trainjob is needed");
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
  if (config.metrics && spec.pods.metrics_port)
    refuse("--metrics and --metrics_port are both given", "leave --metrics out");
  if (config.rendezvous.node_rank >= 0) refuse("--rank is the pod's to say", "leave it out");
  if (spec.server_nodes > 0 && config.mode != Mode::ps)
    refuse("--server_nodes is given, and the job is not a parameter-server job",
           "add --server_num=1 --trainer_num=1");
}

/// The names of objects that the flag may give.
std::optional<std::string> object_of(const CommandArguments& words, std::string_view flag) {
  const auto name = words.value(flag);
  return name ? std::optional(launcher::object_name(flag, *name)) : name;
}

template <class Parse>
auto each_of(const CommandArguments& words, std::string_view flag, Parse parse) {
  std::vector<decltype(parse(flag, std::string()))> parsed;
  for (const std::string& text : words.values(flag)) parsed.push_back(parse(flag, text));
  return parsed;
}

std::optional<std::uint16_t> port_of(const CommandArguments& words, std::string_view flag) {
  const auto port = whole_number(words, flag, 1);
  if (port && *port > 65'535)
    refuse("--" + std::string(flag) + " is '" + std::to_string(*port) + "': ports end with 65535");
  return port ? std::optional(static_cast<std::uint16_t>(*port)) : std::nullopt;
}

std::optional<std::string> pull_policy_of(const CommandArguments& words) {
  const auto policy = words.value("image_pull_policy");
  if (policy && *policy != "Always" && *policy != "IfNotPresent" && *policy != "Never")
    refuse("--image_pull_policy is '" + printable(*policy) + "': Always, IfNotPresent or Never is needed");
  return policy;
}

launcher::PodChoices read_choices(const CommandArguments& words) {
  launcher::PodChoices pods;
  pods.labels = each_of(words, "label", launcher::label_of);
  pods.annotations = each_of(words, "annotation", launcher::annotation_of);
  pods.environment = each_of(words, "env", launcher::environment_of);
  pods.environment_from = each_of(words, "env_from", launcher::source_of);
  pods.resources = each_of(words, "resource", launcher::resource_of);
  pods.node_selector = each_of(words, "node_selector", launcher::label_of);
  pods.volumes = each_of(words, "volume", launcher::volume_of);
  pods.tolerations = each_of(words, "toleration", launcher::toleration_of);
  pods.spread = each_of(words, "spread", launcher::spread_of);
  pods.pull_secrets = each_of(words, "image_pull_secret", launcher::object_name);
  pods.pull_policy = pull_policy_of(words);
  pods.priority_class = object_of(words, "priority_class");
  pods.queue = object_of(words, "queue");
  pods.service_account = object_of(words, "service_account");
  pods.scheduler = object_of(words, "scheduler");
  pods.shared_memory = words.value("shared_memory");
  if (pods.shared_memory && !launcher::is_quantity(*pods.shared_memory))
    refuse("--shared_memory is '" + printable(*pods.shared_memory) + "': an amount of memory is needed",
           "for example 16Gi");
  pods.seconds_after_finish = whole_number(words, "remove_after", 0);
  pods.metrics_port = port_of(words, "metrics_port");
  pods.disruption_budget = words.has("disruption_budget");
  if (const auto user = words.value("run_as")) launcher::set_user("run_as", *user, pods);
  return pods;
}

/// GPUs that fleetrun does not find by itself say how many trainers there are.
void settle_gpus(SchedulerArguments& words, launcher::ManifestSpec& spec) {
  spec.gpus = whole_number(words.own, "gpus_per_node", 1);
  const auto resource = words.own.value("gpu_resource");
  if (!resource) return;
  if (!spec.gpus) refuse("--gpu_resource is given, and --gpus_per_node is not", "say how many each pod gets");
  spec.gpu_resource = launcher::resource_of("gpu_resource", *resource + "=1").first;
  const launcher::JobConfig& config = words.config;
  const bool open = config.mode == Mode::collective && !config.nproc_per_node && !config.devices;
  if (open && spec.gpu_resource != "nvidia.com/gpu")
    words.launch.insert(words.launch.begin(), "--nproc_per_node=" + std::to_string(*spec.gpus));
}

launcher::ManifestSpec read_spec(SchedulerArguments words, const std::vector<std::string>& arguments) {
  launcher::ManifestSpec spec;
  spec.kind = kind_of(words.own);
  spec.name = words.own.value("name").value_or(name_of_script(words.config.script, kLongestName));
  spec.image = words.own.value("image").value_or(kOwnImage);
  spec.name_space = words.own.value("namespace");
  spec.nodes = nodes_of(words);
  spec.server_nodes = whole_number(words.own, "server_nodes", 1).value_or(0);
  spec.cpu = words.own.value("cpu");
  spec.memory = words.own.value("memory");
  spec.secret_name = words.own.value("secret_name");
  spec.port = port_of(words.own, "port").value_or(spec.port);
  spec.pods = read_choices(words.own);
  settle_gpus(words, spec);
  check_launch(words, spec);
  if (!words.own.has("image") && words.own.values("volume").empty())
    warn_apart(words.config.log_level, std::string(kOwnImage) + " has no " + printable(words.config.script) +
                                           ": --volume=pvc:CLAIM:/work brings it, or --image=IMAGE has it");
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

/// Among the files is the Secret: all of them are their owner's alone.
int write_base(const std::string& directory, const launcher::ManifestSpec& spec) {
  const auto files = launcher::kustomize_base(spec);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) refuse("--output is '" + printable(directory) + "': " + error.message());
  for (const launcher::ManifestPart& file : files) {
    const std::string path = directory + "/" + file.name;
    const UniqueFd fd(open_own(path, O_WRONLY | O_CREAT | O_TRUNC, Readers::owner));
    check_errno(fd.value(), "open", "writing " + path);
    const auto size = static_cast<ssize_t>(file.text.size());
    check_errno(::write(fd.value(), file.text.data(), file.text.size()) == size ? 0 : -1, "write", path);
  }
  return print("# kubectl apply -k " + shell_quoted(directory) + "\n");
}

}  // namespace

int run_k8s_command(const std::vector<std::string>& arguments, const Environ&) {
  SchedulerArguments words = parse_scheduler_arguments("k8s", "Kubernetes", arguments, kK8sFlags);
  if (words.own.has("help")) return print(kUsage + describe_flags(kK8sFlags));
  const auto directory = words.own.value("output");
  launcher::ManifestSpec spec = read_spec(std::move(words), arguments);
  const Secret secret = Secret::random();
  spec.secret = secret.bytes();
  if (directory) return write_base(*directory, spec);
  return print(launcher::manifest(spec));
}

}  // namespace fleetrun::cli
