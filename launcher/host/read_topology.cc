#include "launcher/host/read_topology.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

/// The file's text up to 4 KiB without its last newline; "" when it cannot be read.
std::string text_of(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char bytes[4096];
  const ssize_t count = fd ? ::read(fd.value(), bytes, sizeof bytes) : 0;
  std::string text(bytes, count > 0 ? static_cast<std::size_t>(count) : 0);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (int max = 1024; max <= 1 << 16; max *= 4) {  // EINVAL: the kernel's mask is longer
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(max));
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(max));
    const bool fits = ::sched_getaffinity(0, size, set) == 0;
    for (int cpu = 0; fits && cpu < max; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), size, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (fits) break;
  }
  return cpus;
}

/// Physical cores among `allowed`: one file is read and all cores are taken to be alike.
int count_cores(const std::string& root, const std::vector<int>& allowed) {
  if (allowed.empty()) return 1;
  const auto siblings =
      parse_cpu_list(text_of(root + "/sys/devices/system/cpu/cpu" + std::to_string(allowed.front()) +
                             "/topology/thread_siblings_list"));
  const auto shared = std::count_if(siblings.begin(), siblings.end(), [&](int cpu) {
    return std::binary_search(allowed.begin(), allowed.end(), cpu);
  });
  return std::max(1, static_cast<int>(std::ssize(allowed) / std::max<std::ptrdiff_t>(1, shared)));
}

/// `quota` microseconds of CPU time in each `period`, as whole cores; 0 for no limit.
int quota_cores(const std::string& quota, const std::string& period) {
  const auto used = parse_integer(quota);
  const auto of = parse_integer(period);
  if (!used || !of || *used <= 0 || *of <= 0) return 0;
  return static_cast<int>((*used + *of - 1) / *of);
}

/// The tightest CPU quota of this process's cgroup and those above it (v2, or v1's `cpu`); 0 for none.
int read_quota(const std::string& root) {
  int min = 0;
  for (const std::string& line : split(text_of(root + "/proc/self/cgroup"), '\n')) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers != "cpu" && controllers != "cpu,cpuacct") continue;
    const std::string mount = root + "/sys/fs/cgroup" + (unified ? "" : "/" + controllers);
    for (std::string path = line.substr(second + 1); path.starts_with('/');
         path.resize(path == "/" ? 0 : std::max<std::size_t>(1, path.rfind('/')))) {
      const std::string directory = mount + (path == "/" ? "" : path);
      int cores = 0;
      if (unified) {
        const auto words = split(text_of(directory + "/cpu.max"), ' ');
        if (words.size() == 2) cores = quota_cores(words[0], words[1]);
      } else {
        cores =
            quota_cores(text_of(directory + "/cpu.cfs_quota_us"), text_of(directory + "/cpu.cfs_period_us"));
      }
      if (cores > 0 && (min == 0 || cores < min)) min = cores;
    }
  }
  return min;
}

}  // namespace

CpuFacts read_cpu_facts(const std::string& root) {
  CpuFacts facts;
  facts.allowed = allowed_cpus();
  facts.cores = count_cores(root, facts.allowed);
  if (const int quota = read_quota(root); quota > 0) facts.cores = std::min(facts.cores, quota);
  const auto nodes = parse_cpu_list(text_of(root + "/sys/devices/system/node/online"));
  facts.nodes = std::max(1, static_cast<int>(nodes.size()));
  return facts;
}

std::map<std::string, int> read_device_nodes(const std::string& root, const std::vector<std::string>& pci) {
  std::map<std::string, int> nodes;
  for (const std::string& address : pci) {
    // The driver writes 0000:65:00.0 in either case, or with eight digits of domain;
    // sysfs has four, in lower case.
    std::string name = address;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (name.find(':') == 8) name.erase(0, 4);
    const auto node = parse_integer(text_of(root + "/sys/bus/pci/devices/" + name + "/numa_node"));
    if (node && *node >= 0) nodes[address] = static_cast<int>(*node);
  }
  return nodes;
}

Topology restricted(Topology topology, const std::vector<int>& allowed) {
  const std::set<int> may(allowed.begin(), allowed.end());
  for (Core& core : topology.cores) std::erase_if(core.cpus, [&](int cpu) { return !may.contains(cpu); });
  std::erase_if(topology.cores, [](const Core& core) { return core.cpus.empty(); });
  return topology;
}

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto low = parse_integer(part.substr(0, dash));
    const auto high = dash == std::string::npos ? low : parse_integer(part.substr(dash + 1));
    if (!low || !high || *low < 0 || *high - *low >= 1 << 16) continue;
    for (auto cpu = *low; cpu <= *high; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

std::string cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    text.append(text.empty() ? "" : ",").append(std::to_string(cpus[i]));
    if (end - i > 1) text.append("-").append(std::to_string(cpus[end - 1]));
    i = end;
  }
  return text;
}

}  // namespace fleetrun::launcher
