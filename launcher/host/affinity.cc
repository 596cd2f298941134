#include "launcher/host/affinity.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "launcher/host/read_topology.h"

namespace fleetrun::launcher {
namespace {

using Devices = std::vector<std::vector<std::string>>;

/// The cores of each node, as indices into the topology.
std::map<int, std::vector<std::size_t>> cores_by_node(const Topology& topology) {
  std::map<int, std::vector<std::size_t>> nodes;
  for (std::size_t i = 0; i < topology.cores.size(); ++i) nodes[topology.cores[i].node].push_back(i);
  return nodes;
}

/// The node of the first device that has one with usable cores.
std::optional<int> wanted_node(const Topology& topology, const std::vector<std::string>& pci) {
  for (const std::string& address : pci) {
    const auto found = topology.device_nodes.find(address);
    if (found == topology.device_nodes.end()) continue;
    if (std::any_of(topology.cores.begin(), topology.cores.end(),
                    [&](const Core& core) { return core.node == found->second; }))
      return found->second;
  }
  return std::nullopt;
}

Binding binding_of(const Topology& topology, const std::vector<std::size_t>& cores) {
  std::set<int> cpus, nodes;
  for (const std::size_t core : cores) {
    cpus.insert(topology.cores[core].cpus.begin(), topology.cores[core].cpus.end());
    nodes.insert(topology.cores[core].node);
  }
  return {{cpus.begin(), cpus.end()}, {nodes.begin(), nodes.end()}};
}

/// How many of `processes` each node gets, in proportion to its cores: the largest remainders get the rest.
std::map<int, std::size_t> quotas(const std::map<int, std::vector<std::size_t>>& nodes, std::size_t cores,
                                  std::size_t processes) {
  std::map<int, std::size_t> quota;
  std::vector<std::pair<std::size_t, int>> remainders;
  std::size_t given = 0;
  for (const auto& [node, own] : nodes) {
    given += quota[node] = processes * own.size() / cores;
    remainders.emplace_back(processes * own.size() % cores, node);
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; given < processes; ++i, ++given) ++quota[remainders[i % remainders.size()].second];
  return quota;
}

Bindings bind_to_nodes(const Topology& topology, const Devices& devices) {
  const auto nodes = cores_by_node(topology);
  auto quota = quotas(nodes, topology.cores.size(), devices.size());
  std::vector<std::optional<int>> chosen;
  for (const auto& pci : devices) {
    chosen.push_back(wanted_node(topology, pci));
    if (chosen.back() && quota[*chosen.back()] > 0) --quota[*chosen.back()];
  }
  Bindings result;
  for (std::optional<int>& node : chosen) {
    if (!node) {
      const auto open =
          std::find_if(quota.begin(), quota.end(), [](const auto& entry) { return entry.second > 0; });
      node = open == quota.end() ? nodes.begin()->first : open->first;
      if (open != quota.end()) --open->second;
    }
    result.processes.push_back(binding_of(topology, nodes.at(*node)));
  }
  return result;
}

/// Cores that are not taken yet.
class FreeCores {
 public:
  explicit FreeCores(const Topology& topology) : nodes_(cores_by_node(topology)) {}

  /// `count` cores, of `preferred` or of one node where they fit, and in the machine's order.
  std::vector<std::size_t> take(std::size_t count, std::optional<int> preferred) {
    std::vector<std::size_t> taken;
    if (preferred) take_from(nodes_[*preferred], count, taken);
    for (auto& [node, cores] : nodes_) {
      if (taken.empty() && cores.size() >= count) take_from(cores, count, taken);
    }
    for (auto& [node, cores] : nodes_) take_from(cores, count, taken);
    return taken;
  }

 private:
  static void take_from(std::vector<std::size_t>& cores, std::size_t count, std::vector<std::size_t>& taken) {
    const std::size_t here = std::min(count - taken.size(), cores.size());
    const auto end = cores.begin() + static_cast<std::ptrdiff_t>(here);
    taken.insert(taken.end(), cores.begin(), end);
    cores.erase(cores.begin(), end);
  }

  std::map<int, std::vector<std::size_t>> nodes_;
};

Bindings bind_to_own_cores(const Topology& topology, const Devices& devices) {
  const std::size_t each = topology.cores.size() / devices.size();
  FreeCores free(topology);
  Bindings result;
  result.processes.resize(devices.size());
  for (const bool with_device : {true, false}) {  // those with a device choose first
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto node = wanted_node(topology, devices[i]);
      if (node.has_value() == with_device) result.processes[i] = binding_of(topology, free.take(each, node));
    }
  }
  return result;
}

Bindings bind_to_shared_cores(const Topology& topology, const Devices& devices) {
  std::vector<std::size_t> users(topology.cores.size(), 0);
  Bindings result;
  for (const auto& pci : devices) {
    const auto node = wanted_node(topology, pci);
    std::optional<std::size_t> min;
    for (std::size_t core = 0; core < users.size(); ++core) {
      if (node && topology.cores[core].node != *node) continue;
      if (!min || users[core] < users[*min]) min = core;
    }
    ++users[*min];
    result.processes.push_back(binding_of(topology, {*min}));
  }
  result.notes.push_back("--bind=core: " + std::to_string(devices.size()) + " processes share " +
                         std::to_string(topology.cores.size()) + " cores");
  return result;
}

}  // namespace

bool binds(Bind spec, const CpuFacts& cpus, std::size_t processes) noexcept {
  if (spec == Bind::automatic) return cpus.nodes > 1 && processes > 1;
  return spec != Bind::none;
}

Topology topology_for_binding(const CpuFacts& cpus, const std::vector<std::string>& pci) {
  Topology topology = restricted(read_topology(), cpus.allowed);
  topology.device_nodes = read_device_nodes("", pci);
  return topology;
}

std::set<std::string> core_keys(const Topology& topology) {
  std::set<std::string> keys;
  for (const Core& core : topology.cores) {
    for (const int cpu : core.cpus) keys.insert("cpu " + std::to_string(cpu));
  }
  return keys;
}

Topology without_held(Topology topology, const std::map<std::string, std::string>& held) {
  std::erase_if(topology.cores, [&](const Core& core) {
    return std::any_of(core.cpus.begin(), core.cpus.end(),
                       [&](int cpu) { return held.contains("cpu " + std::to_string(cpu)); });
  });
  return topology;
}

Bindings bind_processes(Bind spec, const Topology& topology, const Devices& devices) {
  Bindings nothing;
  nothing.processes.resize(devices.size());
  if (spec == Bind::none || topology.cores.empty() || devices.empty()) return nothing;
  if (spec != Bind::core) return bind_to_nodes(topology, devices);
  return devices.size() > topology.cores.size() ? bind_to_shared_cores(topology, devices)
                                                : bind_to_own_cores(topology, devices);
}

int threads_per_process(int cores, std::size_t processes) noexcept {
  return std::max(1, cores / static_cast<int>(std::max<std::size_t>(1, processes)));
}

}  // namespace fleetrun::launcher
