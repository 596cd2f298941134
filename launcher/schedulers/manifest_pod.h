// The pods of a manifest: what runs in them, as whom, with what, and where. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/schedulers/manifest.h"
#include "launcher/schedulers/yaml_text.h"

namespace fleetrun::launcher {

/// One replicated job of a JobSet, or the only Job.
struct PodGroup {
  std::string name;  // "servers"; empty: of a Job
  int min = 1, max = 1;
  bool ranked = true;  // the pod's index is its rank
  std::vector<std::string> flags;
};

/// What the container is called: policies name it.
std::string container_name(ManifestKind kind);

/// `first`: the name under which the first pod is found.
void write_pod(int indent, const ManifestSpec& spec, const PodGroup& group, const std::string& first,
               Yaml& yaml);

/// "labels:" and its entries, of everything that belongs to the job.
void write_labels(int indent, const ManifestSpec& spec, Yaml& yaml);
/// "annotations:" likewise; nothing where there are none.
void write_annotations(int indent, const ManifestSpec& spec, bool of_pod, Yaml& yaml);

std::string secret_name(const ManifestSpec& spec);

}  // namespace fleetrun::launcher
