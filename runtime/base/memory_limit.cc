#include "runtime/base/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "runtime/base/text.h"

namespace fleetrun {
namespace {

constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;  // version 1 writes about 2^63 for none

/// The limits of `path` and of all levels above it.
void take_levels(const std::string& base, std::string path, const char* file,
                 std::optional<std::uint64_t>& least) {
  for (;;) {
    std::uint64_t bytes = 0;
    if (std::ifstream(base + path + "/" + file) >> bytes && bytes < kNoLimit)
      least = std::min(bytes, least.value_or(bytes));
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.resize(slash);
  }
}

}  // namespace

std::optional<std::uint64_t> cgroup_memory_limit(const std::string& root) {
  std::optional<std::uint64_t> least;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // NUMBER:CONTROLLERS:PATH
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::vector<std::string> controllers = split(line.substr(first + 1, second - first - 1), ',');
    const std::string path = line.substr(second + 1);
    if (line.starts_with("0::")) {
      for (const char* base : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
        take_levels(root + base, path, "memory.max", least);
    } else if (std::find(controllers.begin(), controllers.end(), "memory") != controllers.end()) {
      take_levels(root + "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", least);
    }
  }
  return least;
}

}  // namespace fleetrun
