#include "launcher/schedulers/manifest_pod.h"

#include <algorithm>

namespace fleetrun::launcher {
namespace {

constexpr std::int64_t kProbePeriod = 10;
constexpr const char* kLogs = "/var/log/fleetrun";

/// Kubernetes replaces $(NAME) in words of a command.
std::string unexpanded(const std::string& word) {
  std::string text;
  for (const char c : word) text.append(c == '$' ? 2 : 1, c);
  return text;
}

bool has_flag(const std::vector<std::string>& flags, std::string_view name) {
  return std::any_of(flags.begin(), flags.end(), [&](std::string word) {
    word = word.substr(0, word.find('='));
    std::replace(word.begin() + (word.starts_with("--") ? 2 : 0), word.end(), '-', '_');
    return word == name;
  });
}

class PodWriter {
 public:
  PodWriter(const ManifestSpec& spec, const PodGroup& group, const std::string& first, Yaml& yaml)
      : spec_(spec), pods_(spec.pods), group_(group), first_(first), yaml_(yaml) {}

  void write(int indent) {
    if (group_.name.empty()) yaml_.field(indent, "subdomain", spec_.name);
    yaml_.line(indent, "restartPolicy: Never");
    yaml_.comment(indent, "--grace, and time for fleetrun to say how it ended.");
    yaml_.number(indent, "terminationGracePeriodSeconds", spec_.grace_seconds + 15);
    write_access(indent);
    write_placement(indent);
    yaml_.line(indent, "containers:");
    yaml_.line(indent + 1, "- name: " + container_name(spec_.kind));
    write_container(indent + 2);
    write_volumes(indent);
  }

 private:
  /// As whom the pod runs, and what it may do: what Pod Security "restricted" asks for, and no more access.
  void write_access(int indent) {
    yaml_.line(indent, "automountServiceAccountToken: false  # nothing in the pod asks the cluster");
    yaml_.line(indent, "enableServiceLinks: false  # no variables about other services");
    if (pods_.service_account) yaml_.field(indent, "serviceAccountName", *pods_.service_account);
    yaml_.line(indent, "securityContext:");
    const bool root = pods_.user == 0;
    if (root)
      yaml_.comment(indent + 1, "Root, as --run_as says: not in a namespace under Pod Security restricted.");
    yaml_.line(indent + 1, std::string("runAsNonRoot: ") + (root ? "false" : "true"));
    if (pods_.user) yaml_.number(indent + 1, "runAsUser", *pods_.user);
    if (pods_.group) yaml_.number(indent + 1, "runAsGroup", *pods_.group);
    yaml_.line(indent + 1, "fsGroup: " + std::to_string(pods_.group.value_or(1000)) +
                               "  # may read the secret and write into volumes");
    yaml_.line(indent + 1, "seccompProfile:");
    yaml_.line(indent + 2, "type: RuntimeDefault");
    if (pods_.pull_secrets.empty()) return;
    yaml_.line(indent, "imagePullSecrets:");
    for (const std::string& name : pods_.pull_secrets) yaml_.field(indent + 1, "- name", name);
  }

  void write_placement(int indent) {
    if (pods_.priority_class) yaml_.field(indent, "priorityClassName", *pods_.priority_class);
    if (pods_.scheduler) yaml_.field(indent, "schedulerName", *pods_.scheduler);
    if (!pods_.node_selector.empty()) yaml_.line(indent, "nodeSelector:");
    for (const auto& [key, value] : pods_.node_selector) yaml_.field(indent + 1, yaml_quoted(key), value);
    if (!pods_.tolerations.empty()) yaml_.line(indent, "tolerations:");
    for (const Toleration& toleration : pods_.tolerations) {
      yaml_.field(indent + 1, "- key", toleration.key);
      yaml_.line(indent + 2, std::string("operator: ") + (toleration.value ? "Equal" : "Exists"));
      if (toleration.value) yaml_.field(indent + 2, "value", *toleration.value);
      if (!toleration.effect.empty()) yaml_.field(indent + 2, "effect", toleration.effect);
    }
    if (!pods_.spread.empty()) yaml_.line(indent, "topologySpreadConstraints:");
    for (const SpreadChoice& spread : pods_.spread) {
      yaml_.line(indent + 1, "- maxSkew: 1");
      yaml_.field(indent + 2, "topologyKey", spread.key);
      yaml_.line(indent + 2,
                 std::string("whenUnsatisfiable: ") + (spread.must ? "DoNotSchedule" : "ScheduleAnyway"));
      yaml_.line(indent + 2, "labelSelector:");
      yaml_.line(indent + 3, "matchLabels:");
      yaml_.field(indent + 4, "app.kubernetes.io/instance", spec_.name);
    }
  }

  void write_container(int indent) {
    yaml_.field(indent, "image", spec_.image);
    if (pods_.pull_policy) yaml_.field(indent, "imagePullPolicy", *pods_.pull_policy);
    yaml_.line(indent, "command: [\"fleetrun\"]  # as pid 1: it reaps, and hands signals on");
    yaml_.line(indent, "args:");
    for (const std::string& word : own_flags()) yaml_.line(indent + 1, "- " + yaml_quoted(word));
    for (const auto* words : {&group_.flags, &spec_.flags, &spec_.program}) {
      for (const std::string& word : *words) yaml_.line(indent + 1, "- " + yaml_quoted(unexpanded(word)));
    }
    write_environment(indent);
    yaml_.line(indent, "ports:");
    yaml_.line(indent + 1, "- name: meeting");
    yaml_.number(indent + 2, "containerPort", spec_.port);
    if (pods_.metrics_port) {
      yaml_.line(indent + 1, "- name: metrics");
      yaml_.number(indent + 2, "containerPort", *pods_.metrics_port);
    }
    yaml_.line(indent, "securityContext:");
    yaml_.line(indent + 1, "allowPrivilegeEscalation: false");
    yaml_.line(indent + 1, "capabilities:");
    yaml_.line(indent + 2, "drop: [\"ALL\"]");
    write_resources(indent);
    write_probes(indent);
    write_mounts(indent);
  }

  /// The first pod coordinates.
  std::vector<std::string> own_flags() const {
    const int min = spec_.nodes.min + spec_.server_nodes, max = spec_.nodes.max + spec_.server_nodes;
    std::string nodes = std::to_string(max);
    if (min < max) nodes = std::to_string(min) + ":" + nodes;
    if (min < max && spec_.nodes.multiple > 1) nodes += ":" + std::to_string(spec_.nodes.multiple);
    std::vector<std::string> flags = {"--nnodes=" + nodes,
                                      "--master=" + first_ + ":" + std::to_string(spec_.port)};
    if (group_.ranked) flags.push_back("--rank=$(JOB_COMPLETION_INDEX)");
    flags.push_back("--secret_file=/etc/fleetrun/secret");
    // A directory in it, since everybody may write to the volume itself, and fleetrun wants one of its own.
    if (writes_own_logs()) flags.push_back(std::string("--log_dir=") + kLogs + "/log");
    if (pods_.metrics_port) flags.push_back("--metrics=0.0.0.0:" + std::to_string(*pods_.metrics_port));
    return flags;
  }

  /// The image's working directory may not be the user's to write to.
  bool writes_own_logs() const { return !has_flag(spec_.flags, "--log_dir"); }

  bool sets(std::string_view name) const {
    return std::any_of(pods_.environment.begin(), pods_.environment.end(),
                       [&](const NameValue& variable) { return variable.first == name; });
  }

  void write_environment(int indent) {
    yaml_.line(indent, "env:");
    yaml_.line(indent + 1, "- name: POD_IP  # the address that the other pods get to know");
    yaml_.line(indent + 2, "valueFrom:");
    yaml_.line(indent + 3, "fieldRef:");
    yaml_.line(indent + 4, "fieldPath: status.podIP");
    // The image may not know this user: libraries look for a home and a name.
    const NameValue usual[] = {{"HOME", "/tmp"}, {"LOGNAME", "fleetrun"}};
    for (const auto& [name, value] : usual) {
      if (!pods_.user || pods_.user == 0 || sets(name)) continue;
      yaml_.line(indent + 1, "- name: " + name);
      yaml_.field(indent + 2, "value", value);
    }
    for (const auto& [name, value] : pods_.environment) {
      yaml_.field(indent + 1, "- name", name);
      yaml_.field(indent + 2, "value", unexpanded(value));
    }
    if (!pods_.environment_from.empty()) yaml_.line(indent, "envFrom:");
    for (const auto& [kind, name] : pods_.environment_from) {
      yaml_.line(indent + 1, std::string("- ") + (kind == "secret" ? "secretRef:" : "configMapRef:"));
      yaml_.field(indent + 3, "name", name);
    }
  }

  void write_resources(int indent) {
    std::vector<NameValue> devices = pods_.resources;
    if (spec_.gpus) devices.insert(devices.begin(), {spec_.gpu_resource, std::to_string(*spec_.gpus)});
    if (!spec_.cpu && !spec_.memory && devices.empty()) {
      yaml_.comment(indent, "resources: {requests: {cpu: 8, memory: 64Gi}, limits: {nvidia.com/gpu: 1}}");
      return;
    }
    yaml_.line(indent, "resources:");
    if (spec_.cpu || spec_.memory) {
      yaml_.line(indent + 1, "requests:");
      if (spec_.cpu) yaml_.field(indent + 2, "cpu", *spec_.cpu);
      if (spec_.memory) yaml_.field(indent + 2, "memory", *spec_.memory);
    }
    if (!spec_.memory && devices.empty()) return;
    yaml_.line(indent + 1, "limits:");
    if (spec_.memory) yaml_.field(indent + 2, "memory", *spec_.memory);
    for (const auto& [name, count] : devices) yaml_.field(indent + 2, name, count);
  }

  /// `fleetrun status` succeeds while a job runs in the pod, and asks the launcher itself.
  void write_probes(int indent) {
    const std::int64_t tries = (spec_.join_seconds + 60) / kProbePeriod + 1;
    yaml_.comment(indent,
                  "Until all pods have met there is nothing to ask; that takes --join_timeout at most.");
    write_probe(indent, "startupProbe", kProbePeriod, tries);
    yaml_.line(indent,
               "readinessProbe: {exec: {command: [\"fleetrun\", \"status\"]}, periodSeconds: 10, "
               "timeoutSeconds: 5}");
    yaml_.comment(indent,
                  "The launcher itself does not answer any more for two minutes; hanging processes are "
                  "--hang_timeout's.");
    write_probe(indent, "livenessProbe", 30, 4);
  }

  void write_probe(int indent, const std::string& name, std::int64_t period, std::int64_t tries) {
    yaml_.line(indent, name + ":");
    yaml_.line(indent + 1, "exec:");
    yaml_.line(indent + 2, "command: [\"fleetrun\", \"status\"]");
    yaml_.number(indent + 1, "periodSeconds", period);
    yaml_.line(indent + 1, "timeoutSeconds: 10");
    yaml_.number(indent + 1, "failureThreshold", tries);
  }

  static std::string volume_name(std::size_t i) { return "volume-" + std::to_string(i); }

  void write_mount(int indent, const std::string& name, const std::string& path, bool read_only) {
    yaml_.line(indent, "- name: " + name);
    yaml_.field(indent + 1, "mountPath", path);
    if (read_only) yaml_.line(indent + 1, "readOnly: true");
  }

  void write_mounts(int indent) {
    yaml_.line(indent, "volumeMounts:");
    write_mount(indent + 1, "secret", "/etc/fleetrun", true);
    write_mount(indent + 1, "shared-memory", "/dev/shm", false);
    if (writes_own_logs()) write_mount(indent + 1, "logs", kLogs, false);
    for (std::size_t i = 0; i < pods_.volumes.size(); ++i)
      write_mount(indent + 1, volume_name(i), pods_.volumes[i].path, pods_.volumes[i].read_only);
  }

  void write_volumes(int indent) {
    yaml_.line(indent, "volumes:");
    yaml_.line(indent + 1, "- name: secret");
    yaml_.line(indent + 2, "secret:");
    yaml_.field(indent + 3, "secretName", secret_name(spec_));
    yaml_.line(indent + 3, "defaultMode: 0400");
    yaml_.line(
        indent + 1,
        "- name: shared-memory  # what a container has by itself, 64 MiB, is too little for loaders of "
        "data");
    yaml_.line(indent + 2, "emptyDir:");
    yaml_.line(indent + 3, "medium: Memory");
    if (pods_.shared_memory) yaml_.field(indent + 3, "sizeLimit", *pods_.shared_memory);
    if (writes_own_logs()) {
      yaml_.line(indent + 1, "- name: logs");
      yaml_.line(indent + 2, "emptyDir: {}");
    }
    for (std::size_t i = 0; i < pods_.volumes.size(); ++i) write_volume(indent + 1, i);
  }

  void write_volume(int indent, std::size_t i) {
    using Kind = VolumeChoice::Kind;
    const VolumeChoice& volume = pods_.volumes[i];
    yaml_.line(indent, "- name: " + volume_name(i));
    switch (volume.kind) {
      case Kind::claim:
        yaml_.line(indent + 1, "persistentVolumeClaim:");
        return yaml_.field(indent + 2, "claimName", volume.source);
      case Kind::config_map:
        yaml_.line(indent + 1, "configMap:");
        return yaml_.field(indent + 2, "name", volume.source);
      case Kind::secret:
        yaml_.line(indent + 1, "secret:");
        return yaml_.field(indent + 2, "secretName", volume.source);
      case Kind::empty:
        if (volume.source.empty()) return yaml_.line(indent + 1, "emptyDir: {}");
        yaml_.line(indent + 1, "emptyDir:");
        return yaml_.field(indent + 2, "sizeLimit", volume.source);
    }
  }

  const ManifestSpec& spec_;
  const PodChoices& pods_;
  const PodGroup& group_;
  const std::string& first_;
  Yaml& yaml_;
};

}  // namespace

std::string container_name(ManifestKind kind) {
  return kind == ManifestKind::trainjob ? "node" : "fleetrun";  // Trainer looks for this name
}

std::string secret_name(const ManifestSpec& spec) {
  return spec.secret_name.value_or(spec.name + "-secret");
}

void write_labels(int indent, const ManifestSpec& spec, Yaml& yaml) {
  yaml.line(indent, "labels:");
  yaml.field(indent + 1, "app.kubernetes.io/instance", spec.name);
  yaml.line(indent + 1, "app.kubernetes.io/managed-by: fleetrun");
  for (const auto& [key, value] : spec.pods.labels) yaml.field(indent + 1, yaml_quoted(key), value);
}

void write_annotations(int indent, const ManifestSpec& spec, bool of_pod, Yaml& yaml) {
  const bool scraped = of_pod && spec.pods.metrics_port;
  if (!scraped && spec.pods.annotations.empty()) return;
  yaml.line(indent, "annotations:");
  if (scraped) {
    yaml.field(indent + 1, "prometheus.io/scrape", "true");
    yaml.field(indent + 1, "prometheus.io/port", std::to_string(*spec.pods.metrics_port));
    yaml.field(indent + 1, "prometheus.io/path", "/metrics");
  }
  for (const auto& [key, value] : spec.pods.annotations) yaml.field(indent + 1, yaml_quoted(key), value);
}

void write_pod(int indent, const ManifestSpec& spec, const PodGroup& group, const std::string& first,
               Yaml& yaml) {
  PodWriter(spec, group, first, yaml).write(indent);
}

}  // namespace fleetrun::launcher
