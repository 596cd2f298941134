// The manifests of `fleetrun k8s`: what Kubernetes needs to know to run one fleetrun per pod,
// as YAML with comments. Pure.
//
//   kind job      Secret, headless Service, Job (completionMode Indexed): every pod is alike
//   kind jobset   Secret, JobSet: in a parameter-server job servers and trainers are replicated jobs of their
//                 own; it makes its headless service itself
//   kind trainjob Secret, TrainingRuntime and TrainJob of Kubeflow Trainer v2, which makes a JobSet of them
//
// A namespace under Pod Security "restricted" takes them as they are, unless --run_as=0 asks for root.
//
// What ends a pod, and what Kubernetes makes of it (podFailurePolicy):
//   75                a drain: another pod in its place, not counted
//   disruption        preempted, evicted or its node lost: likewise
//   125, 126, 127     fleetrun itself refuses: the job has failed, since no new pod would do better
//   anything else     the processes have failed, and fleetrun had used up its own restarts
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/model/job_config.h"
#include "launcher/schedulers/pod_choices.h"

namespace fleetrun::launcher {

enum class ManifestKind { job, jobset, trainjob };

struct ManifestSpec {
  ManifestKind kind = ManifestKind::job;
  std::string name, image;
  std::optional<std::string> name_space;
  NodeCount nodes;
  int server_nodes = 0;  // of a JobSet: pods that only serve; the others only train then
  int servers_of_node = 1,
      trainers_of_node = 1;  // where server_nodes is not 0; --server_num and --trainer_num else
  std::optional<std::string> cpu, memory, secret_name;  // secret_name: it is there already
  std::optional<int> gpus;
  std::string gpu_resource = "nvidia.com/gpu";
  PodChoices pods;
  std::uint16_t port = 6768;
  std::string secret;                // 32 bytes
  std::vector<std::string> flags;    // fleetrun's
  std::vector<std::string> program;  // the script and its arguments
  std::int64_t grace_seconds = 30, join_seconds = 600;
  std::string made_by;  // the command line, for people
};

/// One object of the API.
struct ManifestPart {
  std::string name;  // "job": of its file
  std::string text;
};

/// Throws: Error(usage) for names that Kubernetes would not take, texts that are not UTF-8,
/// and what does not go together.
std::vector<ManifestPart> manifest_parts(const ManifestSpec& spec);

/// All of them in one text. Throws: as manifest_parts() does.
std::string manifest(const ManifestSpec& spec);

/// A base for kustomize: kustomization.yaml, and a file for each part. Throws: as manifest_parts() does.
std::vector<ManifestPart> kustomize_base(const ManifestSpec& spec);

}  // namespace fleetrun::launcher
