#include "launcher/schedulers/manifest.h"

#include <algorithm>

#include "launcher/schedulers/manifest_pod.h"
#include "launcher/schedulers/yaml_text.h"
#include "runtime/base/base64.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kLongestHostName = 63;

[[noreturn]] void refuse(const std::string& flag, std::string_view value, const std::string& why,
                         std::string hint = {}) {
  throw Error(ErrorKind::usage, flag + " is '" + printable(value) + "': " + why, std::move(hint));
}

std::size_t digits_of(int number) {
  return std::to_string(number).size();
}

/// What JobSet puts between the job's name and the pod's index.
std::string longest_job(const ManifestSpec& spec) {
  if (spec.kind == ManifestKind::job) return "";
  if (spec.kind == ManifestKind::trainjob) return "-node-0";
  return spec.server_nodes > 0 ? "-trainers-0" : "-workers-0";
}

void check(const ManifestSpec& spec) {
  const std::size_t room = kLongestHostName - longest_job(spec).size() - 1 - digits_of(spec.nodes.max - 1);
  if (!is_dns_label(spec.name, room))
    refuse("--name", spec.name,
           "1 to " + std::to_string(room) + " of a-z, 0-9 and '-' are needed, a letter first and no '-' last",
           "the pods are called NAME-INDEX, which has to be a name of DNS");
  if (spec.name_space && !is_dns_label(*spec.name_space, kLongestHostName))
    refuse("--namespace", *spec.name_space, "it is not the name of a namespace");
  if (spec.secret_name && !is_dns_label(*spec.secret_name, 253))
    refuse("--secret_name", *spec.secret_name, "it is not the name of a Secret");
  const bool blank = std::any_of(spec.image.begin(), spec.image.end(),
                                 [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; });
  if (spec.image.empty() || blank) refuse("--image", spec.image, "the name of an image is needed");
  if (spec.cpu && !is_quantity(*spec.cpu))
    refuse("--cpu", *spec.cpu, "a number of cores is needed", "for example 8 or 500m");
  if (spec.memory && !is_quantity(*spec.memory))
    refuse("--memory", *spec.memory, "an amount of memory is needed", "for example 64Gi");
  if (spec.server_nodes > 0 && spec.kind != ManifestKind::jobset)
    refuse(
        "--server_nodes", std::to_string(spec.server_nodes),
        std::string("pods of a ") + (spec.kind == ManifestKind::job ? "Job" : "TrainJob") + " are all alike",
        "add --kind=jobset");
  if (spec.pods.seconds_after_finish && spec.kind == ManifestKind::trainjob)
    refuse("--remove_after", std::to_string(*spec.pods.seconds_after_finish),
           "a TrainJob is kept until it is deleted", "leave it out, or add --kind=jobset");
  if (spec.pods.metrics_port == spec.port)
    refuse("--metrics_port", std::to_string(spec.port), "pods meet there", "choose another one");
  check_volumes(spec.pods.volumes);
}

class Manifest {
 public:
  explicit Manifest(const ManifestSpec& spec) : spec_(spec) {}

  std::vector<ManifestPart> write() {
    if (!spec_.secret_name) write_secret();
    if (spec_.kind == ManifestKind::job) write_service();
    if (spec_.pods.disruption_budget) write_budget();
    switch (spec_.kind) {
      case ManifestKind::job:
        write_whole_job();
        break;
      case ManifestKind::jobset:
        write_jobset();
        break;
      case ManifestKind::trainjob:
        write_trainjob();
        break;
    }
    parts_.front().text.insert(
        0, "# Made by: " + yaml_comment(spec_.made_by) + "\n# Start it with kubectl apply -f FILE.\n");
    return std::move(parts_);
  }

 private:
  void finish(const char* name) { parts_.push_back({name, yaml_.take()}), yaml_ = {}; }

  std::vector<PodGroup> groups() const {
    const int min = spec_.nodes.min, max = spec_.nodes.max;
    if (spec_.kind == ManifestKind::job) return {{"", min, max, true, {}}};
    if (spec_.kind == ManifestKind::trainjob) return {{"node", min, max, true, {}}};
    if (spec_.server_nodes == 0) return {{"workers", min, max, true, {}}};
    const std::string servers = "--server_num=" + std::to_string(spec_.servers_of_node);
    const std::string trainers = "--trainer_num=" + std::to_string(spec_.trainers_of_node);
    return {{"servers", spec_.server_nodes, spec_.server_nodes, true, {servers, "--trainer_num=0"}},
            {"trainers", min, max, false, {"--server_num=0", trainers}}};
  }

  /// Under which the first pod is found by the others.
  std::string first_pod() const {
    const std::string group = groups().front().name;
    return spec_.name + (group.empty() ? "" : "-" + group + "-0") + "-0." + spec_.name;
  }

  void begin(const std::string& version, const std::string& kind, const std::string& name,
             bool queued = false) {
    yaml_.line(0, "apiVersion: " + version);
    yaml_.line(0, "kind: " + kind);
    yaml_.line(0, "metadata:");
    yaml_.field(1, "name", name);
    if (spec_.name_space) yaml_.field(1, "namespace", *spec_.name_space);
    write_labels(1, spec_, yaml_);
    if (queued && spec_.pods.queue) yaml_.field(2, "kueue.x-k8s.io/queue-name", *spec_.pods.queue);
    write_annotations(1, spec_, false, yaml_);
  }

  void write_suspended() {
    if (spec_.pods.queue) yaml_.line(1, "suspend: true  # until Kueue has room for it");
  }

  void write_secret() {
    yaml_.comment(0,
                  "What the pods prove to each other that they belong together by. Drawn anew for this text: "
                  "keep it to yourself.");
    begin("v1", "Secret", secret_name(spec_));
    yaml_.line(0, "type: Opaque");
    yaml_.line(0, "data:");
    yaml_.line(1, "secret: " + base64(spec_.secret));
    finish("secret");
  }

  void write_service() {
    yaml_.comment(0, "Gives every pod a name, " + spec_.name + "-INDEX." + spec_.name +
                         ", before it is ready: pods meet to get ready.");
    begin("v1", "Service", spec_.name);
    yaml_.line(0, "spec:");
    yaml_.line(1, "clusterIP: None");
    yaml_.line(1, "publishNotReadyAddresses: true");
    yaml_.line(1, "selector:");
    yaml_.field(2, "app.kubernetes.io/instance", spec_.name);
    yaml_.line(1, "ports:");
    yaml_.line(2, "- name: meeting");
    yaml_.number(3, "port", spec_.port);
    finish("service");
  }

  /// Of pods of a Job it may say a number only.
  void write_budget() {
    yaml_.comment(0, "Nodes are drained one pod at a time, and only while the job can go on without it.");
    begin("policy/v1", "PodDisruptionBudget", spec_.name);
    yaml_.line(0, "spec:");
    yaml_.number(1, "minAvailable", spec_.nodes.min + spec_.server_nodes);
    yaml_.line(1, "selector:");
    yaml_.line(2, "matchLabels:");
    yaml_.field(3, "app.kubernetes.io/instance", spec_.name);
    finish("disruption-budget");
  }

  void write_whole_job() {
    yaml_.comment(0, "kubectl logs -f job/" + spec_.name + " shows what the pods show.");
    begin("batch/v1", "Job", spec_.name, true);
    yaml_.line(0, "spec:");
    write_suspended();
    write_end(1);
    write_job(1, groups().front());
    finish("job");
  }

  void write_end(int indent) {
    const auto& seconds = spec_.pods.seconds_after_finish;
    if (seconds) yaml_.number(indent, "ttlSecondsAfterFinished", *seconds);
  }

  void write_jobset() {
    begin("jobset.x-k8s.io/v1alpha2", "JobSet", spec_.name, true);
    yaml_.line(0, "spec:");
    write_suspended();
    write_set(1);
    finish("jobset");
  }

  void write_trainjob() {
    yaml_.comment(0, "What Kubeflow Trainer makes of the TrainJob of the same name.");
    begin("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", spec_.name);
    yaml_.line(0, "spec:");
    yaml_.line(1, "mlPolicy:");
    yaml_.number(2, "numNodes", spec_.nodes.max);
    yaml_.line(1, "template:");
    yaml_.line(2, "spec:");
    write_set(3);
    finish("runtime");
    begin("trainer.kubeflow.org/v1alpha1", "TrainJob", spec_.name, true);
    yaml_.line(0, "spec:");
    write_suspended();
    yaml_.line(1, "runtimeRef:");
    yaml_.line(2, "apiGroup: trainer.kubeflow.org");
    yaml_.line(2, "kind: TrainingRuntime");
    yaml_.field(2, "name", spec_.name);
    yaml_.line(1, "trainer:");
    yaml_.number(2, "numNodes", spec_.nodes.max);
    finish("trainjob");
  }

  /// The spec of a JobSet.
  void write_set(int indent) {
    write_end(indent);
    yaml_.line(indent, "network:");
    yaml_.line(indent + 1, "enableDNSHostnames: true");
    yaml_.line(indent + 1, "publishNotReadyAddresses: true  # pods meet to get ready");
    const std::vector<PodGroup> all = groups();
    yaml_.line(indent, "successPolicy:");
    yaml_.line(indent + 1, "operator: All");
    yaml_.line(indent + 1, "targetReplicatedJobs:");
    yaml_.line(indent + 2, "- " + all.back().name);
    yaml_.line(indent, "failurePolicy:");
    yaml_.line(indent + 1, "maxRestarts: 3");
    yaml_.line(indent + 1, "rules:");
    yaml_.comment(indent + 2, "fleetrun itself refused (125, 126, 127): no new start would do better.");
    yaml_.line(indent + 2, "- name: refused");
    yaml_.line(indent + 3, "action: FailJobSet");
    yaml_.line(indent + 3, "onJobFailureReasons:");
    yaml_.line(indent + 4, "- PodFailurePolicy");
    yaml_.line(indent, "replicatedJobs:");
    for (const PodGroup& group : all) {
      yaml_.line(indent + 1, "- name: " + group.name);
      yaml_.line(indent + 2, "replicas: 1");
      yaml_.line(indent + 2, "template:");
      if (spec_.kind == ManifestKind::trainjob) {
        yaml_.line(indent + 3, "metadata:");
        yaml_.line(indent + 4, "labels:");
        yaml_.line(indent + 5, "trainer.kubeflow.org/trainjob-ancestor-step: trainer");
      }
      yaml_.line(indent + 3, "spec:");
      write_job(indent + 4, group);
    }
  }

  void write_job(int indent, const PodGroup& group) {
    yaml_.line(indent, "completionMode: Indexed");
    yaml_.number(indent, "completions", group.max);
    yaml_.number(indent, "parallelism", group.max);
    if (group.min < group.max) {
      yaml_.comment(indent, "The job goes on with " + std::to_string(group.min) +
                                " pods: each index has tries of its own.");
      yaml_.line(indent, "backoffLimitPerIndex: 3");
      yaml_.number(indent, "maxFailedIndexes", group.max - group.min);
    } else {
      yaml_.line(indent, "backoffLimit: 0  # fleetrun starts failed processes again itself: --max_restart");
    }
    write_failure_policy(indent);
    yaml_.line(indent, "template:");
    yaml_.line(indent + 1, "metadata:");
    write_labels(indent + 2, spec_, yaml_);
    write_annotations(indent + 2, spec_, true, yaml_);
    yaml_.line(indent + 1, "spec:");
    write_pod(indent + 2, spec_, group, first_pod(), yaml_);
  }

  void write_failure_policy(int indent) {
    yaml_.line(indent, "podFailurePolicy:");
    yaml_.line(indent + 1, "rules:");
    yaml_.comment(indent + 2,
                  "75: please start me again. Another pod takes the place, and it does not count.");
    write_exit_rule(indent + 2, "Ignore", "75");
    yaml_.comment(indent + 2, "Preempted, evicted, or the node was lost: likewise.");
    yaml_.line(indent + 2, "- action: Ignore");
    yaml_.line(indent + 3, "onPodConditions:");
    yaml_.line(indent + 4, "- type: DisruptionTarget");
    yaml_.line(indent + 5, "status: \"True\"");
    yaml_.comment(indent + 2,
                  "fleetrun itself refused, or there is no such script: no new pod would do better.");
    write_exit_rule(indent + 2, "FailJob", "125, 126, 127");
  }

  void write_exit_rule(int indent, const std::string& action, const std::string& codes) {
    yaml_.line(indent, "- action: " + action);
    yaml_.line(indent + 1, "onExitCodes:");
    yaml_.line(indent + 2, "containerName: " + container_name(spec_.kind));
    yaml_.line(indent + 2, "operator: In");
    yaml_.line(indent + 2, "values: [" + codes + "]");
  }

  const ManifestSpec& spec_;
  std::vector<ManifestPart> parts_;
  Yaml yaml_;
};

}  // namespace

std::vector<ManifestPart> manifest_parts(const ManifestSpec& spec) {
  check(spec);
  return Manifest(spec).write();
}

std::string manifest(const ManifestSpec& spec) {
  std::string text;
  for (const ManifestPart& part : manifest_parts(spec)) text += (text.empty() ? "" : "---\n") + part.text;
  return text;
}

std::vector<ManifestPart> kustomize_base(const ManifestSpec& spec) {
  std::vector<ManifestPart> files;
  Yaml list;
  list.line(0, "apiVersion: kustomize.config.k8s.io/v1beta1");
  list.line(0, "kind: Kustomization");
  list.line(0, "resources:");
  for (ManifestPart& part : manifest_parts(spec)) {
    list.line(1, "- " + part.name + ".yaml");
    files.push_back({part.name + ".yaml", std::move(part.text)});
  }
  files.push_back({"kustomization.yaml", list.take()});
  return files;
}

}  // namespace fleetrun::launcher
