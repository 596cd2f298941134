// Written line by line, so that the comments stand where they are needed. Every text that comes from the user
// is quoted; in words of the container's command, $ is doubled besides,
// since Kubernetes replaces $(NAME) there.
#include "launcher/schedulers/manifest.h"

#include <algorithm>
#include <cstdio>

#include "runtime/base/base64.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kLongestHostName = 63;
constexpr std::int64_t kProbePeriod = 10;

[[noreturn]] void refuse(const std::string& flag, std::string_view value, const std::string& why,
                         std::string hint = {}) {
  throw Error(ErrorKind::usage, flag + " is '" + printable(value) + "': " + why, std::move(hint));
}

bool is_quantity(std::string_view text) noexcept {
  std::size_t digits = 0;
  while (digits < text.size() &&
         ((text[digits] >= '0' && text[digits] <= '9') || (text[digits] == '.' && digits > 0)))
    ++digits;
  constexpr std::string_view kUnits[] = {"", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi"};
  return digits > 0 &&
         std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(digits), '.') <= 1 &&
         text[digits - 1] != '.' &&
         std::find(std::begin(kUnits), std::end(kUnits), text.substr(digits)) != std::end(kUnits);
}

std::size_t digits_of(int number) {
  return std::to_string(number).size();
}

void check(const ManifestSpec& spec) {
  const bool roles = spec.server_nodes > 0;
  const std::string longest_job = spec.kind == ManifestKind::job ? "" : roles ? "-trainers-0" : "-workers-0";
  const std::size_t room = kLongestHostName - longest_job.size() - 1 - digits_of(spec.nodes.max - 1);
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
  if (roles && spec.kind == ManifestKind::job)
    refuse("--server_nodes", std::to_string(spec.server_nodes), "pods of a Job are all alike",
           "add --kind=jobset");
}

/// One replicated job of a JobSet, or the only Job.
struct PodGroup {
  std::string name;  // "servers"; empty: of a Job
  int min = 1, max = 1;
  bool ranked = true;  // the pod's index is its rank
  std::vector<std::string> flags;
};

/// For a comment: other scripts have line breaks of their own, which would end it.
std::string plain(std::string_view text) {
  std::string line = printable(text, 4000);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x7f; }, '?');
  return line;
}

class Yaml {
 public:
  void line(int indent, std::string_view text) {
    text_.append(static_cast<std::size_t>(2 * indent), ' ').append(text).append("\n");
  }
  void separate() { text_.append("---\n"); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class Manifest {
 public:
  explicit Manifest(const ManifestSpec& spec) : spec_(spec) {}

  std::string write() {
    yaml_.line(0, "# Made by: " + plain(spec_.made_by));
    yaml_.line(0, "# Start it with kubectl apply -f FILE; kubectl logs -f job/… shows what the pods show.");
    if (!spec_.secret_name) write_secret();
    if (spec_.kind == ManifestKind::job) {
      write_service();
      yaml_.line(0, "apiVersion: batch/v1");
      yaml_.line(0, "kind: Job");
      write_metadata();
      yaml_.line(0, "spec:");
      write_job(1, whole_job());
    } else {
      write_jobset();
    }
    return yaml_.take();
  }

 private:
  std::string secret_name() const { return spec_.secret_name.value_or(spec_.name + "-secret"); }

  PodGroup whole_job() const { return {"", spec_.nodes.min, spec_.nodes.max, true, {}}; }

  std::vector<PodGroup> groups() const {
    if (spec_.server_nodes == 0) return {{"workers", spec_.nodes.min, spec_.nodes.max, true, {}}};
    return {{"servers",
             spec_.server_nodes,
             spec_.server_nodes,
             true,
             {"--server_num=" + std::to_string(spec_.servers_of_node), "--trainer_num=0"}},
            {"trainers",
             spec_.nodes.min,
             spec_.nodes.max,
             false,
             {"--server_num=0", "--trainer_num=" + std::to_string(spec_.trainers_of_node)}}};
  }

  void write_metadata() {
    yaml_.line(0, "metadata:");
    write_name(1, spec_.name);
  }

  void write_name(int indent, const std::string& name) {
    yaml_.line(indent, "name: " + yaml_quoted(name));
    if (spec_.name_space) yaml_.line(indent, "namespace: " + yaml_quoted(*spec_.name_space));
    yaml_.line(indent, "labels:");
    yaml_.line(indent + 1, "app.kubernetes.io/instance: " + yaml_quoted(spec_.name));
    yaml_.line(indent + 1, "app.kubernetes.io/managed-by: fleetrun");
  }

  void write_secret() {
    yaml_.line(0,
               "# What the pods prove to each other that they belong together by. Drawn anew for this text: "
               "keep it to yourself.");
    yaml_.line(0, "apiVersion: v1");
    yaml_.line(0, "kind: Secret");
    yaml_.line(0, "metadata:");
    write_name(1, secret_name());
    yaml_.line(0, "type: Opaque");
    yaml_.line(0, "data:");
    yaml_.line(1, "secret: " + base64(spec_.secret));
    yaml_.separate();
  }

  void write_service() {
    yaml_.line(0, "# Gives every pod a name, " + spec_.name + "-INDEX." + spec_.name +
                      ", before it is ready: pods meet to get ready.");
    yaml_.line(0, "apiVersion: v1");
    yaml_.line(0, "kind: Service");
    write_metadata();
    yaml_.line(0, "spec:");
    yaml_.line(1, "clusterIP: None");
    yaml_.line(1, "publishNotReadyAddresses: true");
    yaml_.line(1, "selector:");
    yaml_.line(2, "app.kubernetes.io/instance: " + yaml_quoted(spec_.name));
    yaml_.line(1, "ports:");
    yaml_.line(2, "- name: meeting");
    yaml_.line(3, "port: " + std::to_string(spec_.port));
    yaml_.separate();
  }

  void write_jobset() {
    yaml_.line(0, "apiVersion: jobset.x-k8s.io/v1alpha2");
    yaml_.line(0, "kind: JobSet");
    write_metadata();
    yaml_.line(0, "spec:");
    yaml_.line(1, "network:");
    yaml_.line(2, "enableDNSHostnames: true");
    yaml_.line(2, "publishNotReadyAddresses: true  # pods meet to get ready");
    const std::vector<PodGroup> all = groups();
    yaml_.line(1, "successPolicy:");
    yaml_.line(2, "operator: All");
    yaml_.line(2, "targetReplicatedJobs:");
    yaml_.line(3, "- " + all.back().name);
    yaml_.line(1, "failurePolicy:");
    yaml_.line(2, "maxRestarts: 3");
    yaml_.line(2, "rules:");
    yaml_.line(3, "# fleetrun itself refused (125, 126, 127): no new start would do better.");
    yaml_.line(3, "- name: refused");
    yaml_.line(4, "action: FailJobSet");
    yaml_.line(4, "onJobFailureReasons:");
    yaml_.line(5, "- PodFailurePolicy");
    yaml_.line(1, "replicatedJobs:");
    for (const PodGroup& group : all) {
      yaml_.line(2, "- name: " + group.name);
      yaml_.line(3, "replicas: 1");
      yaml_.line(3, "template:");
      yaml_.line(4, "spec:");
      write_job(5, group);
    }
  }

  void write_job(int indent, const PodGroup& group) {
    const std::string pods = std::to_string(group.max);
    yaml_.line(indent, "completionMode: Indexed");
    yaml_.line(indent, "completions: " + pods);
    yaml_.line(indent, "parallelism: " + pods);
    if (group.min < group.max) {
      yaml_.line(indent, "# The job goes on with " + std::to_string(group.min) +
                             " pods: each index has tries of its own.");
      yaml_.line(indent, "backoffLimitPerIndex: 3");
      yaml_.line(indent, "maxFailedIndexes: " + std::to_string(group.max - group.min));
    } else {
      yaml_.line(indent, "backoffLimit: 0  # fleetrun starts failed processes again itself: --max_restart");
    }
    write_failure_policy(indent);
    yaml_.line(indent, "template:");
    yaml_.line(indent + 1, "metadata:");
    yaml_.line(indent + 2, "labels:");
    yaml_.line(indent + 3, "app.kubernetes.io/instance: " + yaml_quoted(spec_.name));
    yaml_.line(indent + 1, "spec:");
    write_pod(indent + 2, group);
  }

  void write_failure_policy(int indent) {
    yaml_.line(indent, "podFailurePolicy:");
    yaml_.line(indent + 1, "rules:");
    yaml_.line(indent + 2,
               "# 75: please start me again. Another pod takes the place, and it does not count.");
    write_exit_rule(indent + 2, "Ignore", "75");
    yaml_.line(indent + 2, "# Preempted, evicted, or the node was lost: likewise.");
    yaml_.line(indent + 2, "- action: Ignore");
    yaml_.line(indent + 3, "onPodConditions:");
    yaml_.line(indent + 4, "- type: DisruptionTarget");
    yaml_.line(indent + 5, "status: \"True\"");
    yaml_.line(indent + 2,
               "# fleetrun itself refused, or there is no such script: no new pod would do better.");
    write_exit_rule(indent + 2, "FailJob", "125, 126, 127");
  }

  void write_exit_rule(int indent, const std::string& action, const std::string& codes) {
    yaml_.line(indent, "- action: " + action);
    yaml_.line(indent + 1, "onExitCodes:");
    yaml_.line(indent + 2, "containerName: fleetrun");
    yaml_.line(indent + 2, "operator: In");
    yaml_.line(indent + 2, "values: [" + codes + "]");
  }

  void write_pod(int indent, const PodGroup& group) {
    if (group.name.empty()) yaml_.line(indent, "subdomain: " + yaml_quoted(spec_.name));
    yaml_.line(indent, "restartPolicy: Never");
    yaml_.line(indent, "# --grace, and time for fleetrun to say how it ended.");
    yaml_.line(indent, "terminationGracePeriodSeconds: " + std::to_string(spec_.grace_seconds + 15));
    yaml_.line(indent,
               "# An image that does not run as root needs a group that may read the secret: "
               "securityContext: {fsGroup: 1000}");
    yaml_.line(indent, "containers:");
    yaml_.line(indent + 1, "- name: fleetrun");
    write_container(indent + 2, group);
    yaml_.line(indent, "volumes:");
    yaml_.line(indent + 1, "- name: secret");
    yaml_.line(indent + 2, "secret:");
    yaml_.line(indent + 3, "secretName: " + yaml_quoted(secret_name()));
    yaml_.line(indent + 3, "defaultMode: 0400");
    yaml_.line(
        indent + 1,
        "- name: shared-memory  # what a container has by itself, 64 MiB, is too little for loaders of data");
    yaml_.line(indent + 2, "emptyDir:");
    yaml_.line(indent + 3, "medium: Memory");
  }

  void write_container(int indent, const PodGroup& group) {
    yaml_.line(indent, "image: " + yaml_quoted(spec_.image));
    yaml_.line(indent, "command: [\"fleetrun\"]  # as pid 1: it reaps, and hands signals on");
    yaml_.line(indent, "args:");
    for (const std::string& word : rendezvous_flags(group)) yaml_.line(indent + 1, "- " + yaml_quoted(word));
    for (const auto* words : {&group.flags, &spec_.flags, &spec_.program}) {
      for (const std::string& word : *words) yaml_.line(indent + 1, "- " + yaml_quoted(unexpanded(word)));
    }
    yaml_.line(indent, "env:");
    yaml_.line(indent + 1, "- name: POD_IP  # the address that the other pods get to know");
    yaml_.line(indent + 2, "valueFrom:");
    yaml_.line(indent + 3, "fieldRef:");
    yaml_.line(indent + 4, "fieldPath: status.podIP");
    yaml_.line(indent, "ports:");
    yaml_.line(indent + 1, "- name: meeting");
    yaml_.line(indent + 2, "containerPort: " + std::to_string(spec_.port));
    write_resources(indent);
    write_probes(indent);
    yaml_.line(indent, "volumeMounts:");
    yaml_.line(indent + 1, "- name: secret");
    yaml_.line(indent + 2, "mountPath: /etc/fleetrun");
    yaml_.line(indent + 2, "readOnly: true");
    yaml_.line(indent + 1, "- name: shared-memory");
    yaml_.line(indent + 2, "mountPath: /dev/shm");
  }

  /// The first pod coordinates.
  std::vector<std::string> rendezvous_flags(const PodGroup& group) const {
    const std::string first = group.name.empty()
                                  ? spec_.name + "-0." + spec_.name
                                  : spec_.name + "-" + groups().front().name + "-0-0." + spec_.name;
    const int min = spec_.nodes.min + spec_.server_nodes, max = spec_.nodes.max + spec_.server_nodes;
    std::string nodes = std::to_string(max);
    if (min < max) nodes = std::to_string(min) + ":" + nodes;
    if (min < max && spec_.nodes.multiple > 1) nodes += ":" + std::to_string(spec_.nodes.multiple);
    std::vector<std::string> flags = {"--nnodes=" + nodes,
                                      "--master=" + first + ":" + std::to_string(spec_.port)};
    if (group.ranked) flags.push_back("--rank=$(JOB_COMPLETION_INDEX)");
    flags.push_back("--secret_file=/etc/fleetrun/secret");
    return flags;
  }

  static std::string unexpanded(const std::string& word) {
    std::string text;
    for (const char c : word) text.append(c == '$' ? 2 : 1, c);
    return text;
  }

  void write_resources(int indent) {
    if (!spec_.cpu && !spec_.memory && !spec_.gpus) {
      yaml_.line(indent, "# resources: {requests: {cpu: 8, memory: 64Gi}, limits: {nvidia.com/gpu: 1}}");
      return;
    }
    yaml_.line(indent, "resources:");
    if (spec_.cpu || spec_.memory) {
      yaml_.line(indent + 1, "requests:");
      if (spec_.cpu) yaml_.line(indent + 2, "cpu: " + yaml_quoted(*spec_.cpu));
      if (spec_.memory) yaml_.line(indent + 2, "memory: " + yaml_quoted(*spec_.memory));
    }
    if (spec_.memory || spec_.gpus) {
      yaml_.line(indent + 1, "limits:");
      if (spec_.memory) yaml_.line(indent + 2, "memory: " + yaml_quoted(*spec_.memory));
      if (spec_.gpus) yaml_.line(indent + 2, "nvidia.com/gpu: " + yaml_quoted(std::to_string(*spec_.gpus)));
    }
  }

  /// `fleetrun status` succeeds while a job runs in the pod, and asks the launcher itself.
  void write_probes(int indent) {
    const std::int64_t tries = (spec_.join_seconds + 60) / kProbePeriod + 1;
    yaml_.line(indent,
               "# Until all pods have met there is nothing to ask; that takes --join_timeout at most.");
    write_probe(indent, "startupProbe", kProbePeriod, tries);
    yaml_.line(indent,
               "readinessProbe: {exec: {command: [\"fleetrun\", \"status\"]}, periodSeconds: 10, "
               "timeoutSeconds: 5}");
    yaml_.line(indent,
               "# The launcher itself does not answer any more for two minutes; hanging processes are "
               "--hang_timeout's.");
    write_probe(indent, "livenessProbe", 30, 4);
  }

  void write_probe(int indent, const std::string& name, std::int64_t period, std::int64_t tries) {
    yaml_.line(indent, name + ":");
    yaml_.line(indent + 1, "exec:");
    yaml_.line(indent + 2, "command: [\"fleetrun\", \"status\"]");
    yaml_.line(indent + 1, "periodSeconds: " + std::to_string(period));
    yaml_.line(indent + 1, "timeoutSeconds: 10");
    yaml_.line(indent + 1, "failureThreshold: " + std::to_string(tries));
  }

  const ManifestSpec& spec_;
  Yaml yaml_;
};

}  // namespace

bool is_dns_label(std::string_view name, std::size_t longest) noexcept {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= longest && is_letter(name.front()) && name.back() != '-' &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

std::string yaml_quoted(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0)
      throw Error(ErrorKind::usage,
                  "'" + printable(text) + "' is not UTF-8, and a manifest holds nothing else",
                  "pass such bytes in a file of the image");
    const auto byte = static_cast<unsigned char>(text.front());
    char escape[16] = {};
    if (length > 1) {
      std::uint32_t point = byte & (0x7fU >> length);
      for (std::size_t i = 1; i < length; ++i)
        point = (point << 6) | (static_cast<unsigned char>(text[i]) & 0x3fU);
      std::snprintf(escape, sizeof escape, "\\U%08x", point);
      quoted.append(escape);
    } else if (byte < 0x20 || byte == 0x7f) {
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      quoted.append(escape);
    } else {
      if (byte == '"' || byte == '\\') quoted.push_back('\\');
      quoted.push_back(text.front());
    }
    text.remove_prefix(length);
  }
  return quoted + "\"";
}

std::string manifest(const ManifestSpec& spec) {
  check(spec);
  return Manifest(spec).write();
}

}  // namespace fleetrun::launcher
