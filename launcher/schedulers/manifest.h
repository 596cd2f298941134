// The manifests of `fleetrun k8s`: what Kubernetes needs to know to run one fleetrun per pod,
// as YAML with comments. Pure.
//
//   kind job      Secret, headless Service, Job (completionMode Indexed): every pod is alike
//   kind jobset   Secret, JobSet: in a parameter-server job servers and trainers are replicated jobs of their
//                 own; it makes its headless service itself
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
#include <string_view>
#include <vector>

#include "launcher/model/job_config.h"

namespace fleetrun::launcher {

enum class ManifestKind { job, jobset };

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
  std::uint16_t port = 6768;
  std::string secret;                // 32 bytes
  std::vector<std::string> flags;    // fleetrun's
  std::vector<std::string> program;  // the script and its arguments
  std::int64_t grace_seconds = 30, join_seconds = 600;
  std::string made_by;  // the command line, for people
};

/// Throws: Error(usage) for names that Kubernetes would not take, texts that are not UTF-8,
/// and what does not go together.
std::string manifest(const ManifestSpec& spec);

/// A label of DNS that begins with a letter: lower case, digits and '-', at most `longest`.
bool is_dns_label(std::string_view name, std::size_t longest) noexcept;

/// `text` as a YAML string in double quotes; everything but plain ASCII is escaped.
/// Throws: Error(usage) where it is not UTF-8.
std::string yaml_quoted(std::string_view text);

}  // namespace fleetrun::launcher
