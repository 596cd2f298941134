#include "launcher/host/affinity.h"

#include <doctest/doctest.h>

#include "launcher/host/read_topology.h"

using namespace fleetrun::launcher;

namespace {

using Devices = std::vector<std::vector<std::string>>;
using Numbers = std::vector<int>;

/// `nodes` nodes of `cores` cores with two CPUs each, numbered as Linux often does: siblings are far apart.
Topology machine(int nodes, int cores) {
  Topology topology;
  for (int i = 0; i < nodes * cores; ++i) topology.cores.push_back({{i, i + nodes * cores}, i / cores});
  return topology;
}

std::vector<Numbers> nodes_of(const Bindings& bindings) {
  std::vector<Numbers> nodes;
  for (const Binding& binding : bindings.processes) nodes.push_back(binding.memory_nodes);
  return nodes;
}

}  // namespace

TEST_CASE("auto binds several processes on several nodes, and nothing else") {
  CHECK(binds(Bind::automatic, {{}, 8, 2}, 2));
  CHECK_FALSE(binds(Bind::automatic, {{}, 8, 1}, 2));
  CHECK_FALSE(binds(Bind::automatic, {{}, 8, 2}, 1));
  CHECK_FALSE(binds(Bind::none, {{}, 8, 2}, 2));
  CHECK(binds(Bind::core, {{}, 8, 1}, 1));
  CHECK(bind_processes(Bind::none, machine(2, 2), Devices(1)).processes == std::vector<Binding>(1));
  CHECK(bind_processes(Bind::core, Topology(), Devices(2)).processes == std::vector<Binding>(2));
}

TEST_CASE("numa gives neighbours the same node, with all of its CPUs") {
  const Bindings bindings = bind_processes(Bind::numa, machine(2, 2), Devices(4));
  CHECK(nodes_of(bindings) == std::vector<Numbers>{{0}, {0}, {1}, {1}});
  CHECK(bindings.processes[3].cpus == Numbers{2, 3, 6, 7});
  CHECK(bindings == bind_processes(Bind::automatic, machine(2, 2), Devices(4)));
}

TEST_CASE("numa deals processes out in proportion to the cores that may be used") {
  const Topology topology =
      restricted(machine(2, 4), {0, 4, 5, 6, 8, 12});  // one core of node 0, three of node 1
  CHECK(nodes_of(bind_processes(Bind::numa, topology, Devices(4))) ==
        std::vector<Numbers>{{0}, {1}, {1}, {1}});
  CHECK(nodes_of(bind_processes(Bind::numa, machine(2, 1), Devices(3))) ==
        std::vector<Numbers>{{0}, {0}, {1}});
}

TEST_CASE("a process goes to its device's node, and the others fill what is left") {
  Topology topology = machine(2, 2);
  topology.device_nodes = {{"a", 1}, {"b", 0}, {"far", 7}};
  CHECK(nodes_of(bind_processes(Bind::numa, topology, {{"a"}, {"b"}})) == std::vector<Numbers>{{1}, {0}});
  CHECK(nodes_of(bind_processes(Bind::numa, topology, {{}, {"b"}, {}, {"b"}})) ==
        std::vector<Numbers>{{1}, {0}, {1}, {0}});
  CHECK(nodes_of(bind_processes(Bind::numa, topology, {{"far"}, {"unknown"}})) ==
        std::vector<Numbers>{{0}, {1}});
  const Bindings own = bind_processes(Bind::core, topology, {{}, {"b"}, {"b"}, {"b"}});
  CHECK(nodes_of(own) == std::vector<Numbers>{{1}, {0}, {0}, {1}});  // node 0 has two cores only
}

TEST_CASE("core gives everyone as many cores, whole, and each core to one") {
  const Bindings bindings = bind_processes(Bind::core, machine(2, 4), Devices(3));
  CHECK(bindings.processes[0] == Binding{{0, 1, 8, 9}, {0}});
  CHECK(bindings.processes[1] == Binding{{2, 3, 10, 11}, {0}});
  CHECK(bindings.processes[2] == Binding{{4, 5, 12, 13}, {1}});
  CHECK(bindings.notes.empty());
}

TEST_CASE("core crosses nodes only where a process fits into none") {
  const Bindings bindings = bind_processes(Bind::core, machine(2, 3), Devices(3));
  CHECK(nodes_of(bindings) == std::vector<Numbers>{{0}, {1}, {0, 1}});
  CHECK(bindings.processes[2].cpus == Numbers{2, 5, 8, 11});
  CHECK(nodes_of(bind_processes(Bind::core, machine(2, 2), Devices(1))) == std::vector<Numbers>{{0, 1}});
}

TEST_CASE("more processes than cores share them evenly, and the user is told") {
  const Bindings bindings = bind_processes(Bind::core, machine(1, 2), Devices(4));
  CHECK(bindings.processes[0].cpus == bindings.processes[2].cpus);
  CHECK(bindings.processes[1].cpus == Numbers{1, 3});
  CHECK(bindings.notes == std::vector<std::string>{"--bind=core: 4 processes share 2 cores"});
  Topology topology = machine(2, 1);
  topology.device_nodes = {{"a", 1}};
  CHECK(nodes_of(bind_processes(Bind::core, topology, {{"a"}, {"a"}, {}})) ==
        std::vector<Numbers>{{1}, {1}, {0}});
}

TEST_CASE("threads are the share of the cores, and never none") {
  CHECK(threads_per_process(16, 3) == 5);
  CHECK(threads_per_process(2, 3) == 1);
  CHECK(threads_per_process(2, 0) == 2);
}

TEST_CASE("cores of which another job holds a CPU are left out") {
  const Topology free =
      without_held(machine(1, 4), {{"cpu 1", "abcdef"}, {"cpu 6", "abcdef"}, {"gpu 0", "x"}});
  REQUIRE(free.cores.size() == 2);
  CHECK(free.cores[0].cpus == Numbers{0, 4});
  CHECK(core_keys(free) == std::set<std::string>{"cpu 0", "cpu 3", "cpu 4", "cpu 7"});
}
