// What a cluster, or its administrators, want of pods beyond the launch: where they run, what they are given
// and as whom they run. The words of `fleetrun k8s` that say it, checked as Kubernetes checks them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fleetrun::launcher {

using NameValue = std::pair<std::string, std::string>;

struct VolumeChoice {
  enum class Kind { claim, config_map, secret, empty } kind = Kind::claim;
  std::string source;  // its name; of an empty directory: its size, or ""
  std::string path;
  bool read_only = false;
  bool operator==(const VolumeChoice&) const = default;
};

struct Toleration {
  std::string key, effect;           // no effect: all
  std::optional<std::string> value;  // without it any
  bool operator==(const Toleration&) const = default;
};

struct SpreadChoice {
  std::string key;    // of the nodes' label: "topology.kubernetes.io/zone"
  bool must = false;  // else as far as it can be
  bool operator==(const SpreadChoice&) const = default;
};

struct PodChoices {
  std::vector<NameValue> labels, annotations;  // of everything that is made
  std::vector<NameValue> environment;          // NAME, value
  std::vector<NameValue> environment_from;     // "secret" or "configmap", name
  std::vector<NameValue> resources;            // "rdma/ib", count
  std::vector<NameValue> node_selector;        // label, value
  std::vector<VolumeChoice> volumes;
  std::vector<Toleration> tolerations;
  std::vector<SpreadChoice> spread;
  std::vector<std::string> pull_secrets;
  std::optional<std::string> pull_policy, priority_class, queue, service_account, scheduler;
  std::optional<std::string> shared_memory;          // size of /dev/shm
  std::optional<std::int64_t> seconds_after_finish;  // then everything is removed
  std::optional<std::uint16_t> metrics_port;
  std::optional<std::int64_t> user = 1000, group = 1000;  // no user: the image's
  bool disruption_budget = false;
  bool operator==(const PodChoices&) const = default;
};

/// A label of DNS that begins with a letter: lower case, digits and '-', at most `longest`.
bool is_dns_label(std::string_view name, std::size_t longest) noexcept;

/// "8", "500m", "64Gi".
bool is_quantity(std::string_view text) noexcept;

// Of the value of a flag. Each throws: Error(usage) that names flag and value.
NameValue label_of(std::string_view flag, const std::string& text);        // KEY=VALUE
NameValue annotation_of(std::string_view flag, const std::string& text);   // KEY=VALUE, any value
NameValue environment_of(std::string_view flag, const std::string& text);  // NAME=VALUE
NameValue source_of(std::string_view flag, const std::string& text);       // secret:NAME, configmap:NAME
NameValue resource_of(std::string_view flag, const std::string& text);     // DOMAIN/NAME=COUNT
std::string object_name(std::string_view flag, const std::string& text);
VolumeChoice volume_of(std::string_view flag, const std::string& text);
Toleration toleration_of(std::string_view flag, const std::string& text);  // KEY[=VALUE][:EFFECT]
SpreadChoice spread_of(std::string_view flag, const std::string& text);    // KEY[:must]
/// "1000", "1000:2000", or "image". Into `choices`.
void set_user(std::string_view flag, const std::string& text, PodChoices& choices);

/// Throws: Error(usage) where two volumes are mounted at one path, or one where fleetrun mounts its own.
void check_volumes(const std::vector<VolumeChoice>& volumes);

}  // namespace fleetrun::launcher
