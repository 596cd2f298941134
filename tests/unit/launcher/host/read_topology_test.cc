#include "launcher/host/read_topology.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

using Numbers = std::vector<int>;

/// A root below which files can be made with their directories.
class Root {
 public:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((directory_.path() / path).parent_path());
    directory_.write(path, text);
  }
  std::string path() const { return directory_.path(); }

 private:
  tests::TempDir directory_;
};

int allowed_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  return CPU_COUNT(&set);
}

}  // namespace

TEST_CASE("lists of CPUs are read and written") {
  CHECK(parse_cpu_list("0-3,8") == Numbers{0, 1, 2, 3, 8});
  CHECK(parse_cpu_list("") == Numbers{});
  CHECK(parse_cpu_list("x,2,5-y,3-1") == Numbers{2});
  CHECK(cpu_list({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
  CHECK(cpu_list({}) == "");
}

TEST_CASE("without any files a machine has its allowed CPUs as cores, and one node") {
  const CpuFacts facts = read_cpu_facts(Root().path());
  CHECK(facts.cores == allowed_here());
  CHECK(std::ssize(facts.allowed) == allowed_here());
  CHECK(facts.nodes == 1);
}

TEST_CASE("memory nodes are counted") {
  Root root;
  root.write("sys/devices/system/node/online", "0-1,4\n");
  CHECK(read_cpu_facts(root.path()).nodes == 3);
}

TEST_CASE("a CPU quota of the cgroup or of one above it makes fewer cores, rounded up") {
  Root v2;
  v2.write("proc/self/cgroup", "0::/jobs/mine\n");
  v2.write("sys/fs/cgroup/jobs/mine/cpu.max", "max 100000\n");
  CHECK(read_cpu_facts(v2.path()).cores == allowed_here());
  v2.write("sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  CHECK(read_cpu_facts(v2.path()).cores == 1);
  Root v1;
  v1.write("proc/self/cgroup", "3:cpuset:/\n2:cpu,cpuacct:/a\n");
  v1.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "25000\n");
  v1.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  CHECK(read_cpu_facts(v1.path()).cores == 1);
}

TEST_CASE("the node of a PCI device comes from sysfs, however the driver writes its address") {
  Root root;
  root.write("sys/bus/pci/devices/0000:e1:00.0/numa_node", "1\n");
  root.write("sys/bus/pci/devices/0000:21:00.0/numa_node", "-1\n");
  const auto nodes = read_device_nodes(root.path(), {"00000000:E1:00.0", "0000:21:00.0", "0000:99:00.0"});
  CHECK(nodes == std::map<std::string, int>{{"00000000:E1:00.0", 1}});
}

TEST_CASE("hwloc tells cores with their SMT siblings and nodes") {
  const Topology topology = read_topology("Package:2 NUMANode:1 Core:3 PU:2");
  REQUIRE(topology.cores.size() == 6);
  CHECK(topology.cores[0] == Core{{0, 1}, 0});
  CHECK(topology.cores[2] == Core{{4, 5}, 0});
  CHECK(topology.cores[3] == Core{{6, 7}, 1});
  CHECK(read_topology().cores.size() > 0);
}

TEST_CASE("only allowed CPUs are used, and a core without any is left out") {
  const Topology whole = read_topology("Package:2 NUMANode:1 Core:2 PU:2");
  const Topology topology = restricted(whole, {1, 4, 5});
  CHECK(topology.cores == std::vector<Core>{{{1}, 0}, {{4, 5}, 1}});
}
