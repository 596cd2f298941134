// Reads the cores and memory nodes of this machine.
//
// What every job needs to know is cheap (read_cpu_facts: one system call and a few small files). The topology
// itself is read through hwloc, and only where something is bound: libhwloc is loaded then, so that other
// jobs neither pay for it nor need it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/model/topology.h"

namespace fleetrun::launcher {

/// Looks below `root` ("" for the machine) and at the calling process's affinity mask.
CpuFacts read_cpu_facts(const std::string& root);

/// The memory node of each PCI device, from /sys/bus/pci below `root`;
/// one that is near to no node is left out.
std::map<std::string, int> read_device_nodes(const std::string& root, const std::vector<std::string>& pci);

/// The cores and nodes of the machine, or of hwloc's synthetic description ("numa:2 core:4 pu:2") where one
/// is given. Throws: Error(host) when libhwloc is not there or cannot tell.
Topology read_topology(const std::string& synthetic = "");

/// Only what may be used: cores keep the allowed ones of their CPUs,
/// and those without any are left out. Pure.
Topology restricted(Topology topology, const std::vector<int>& allowed);

/// "0-3,8" → {0,1,2,3,8}; numbers that make no sense are left out. Pure.
std::vector<int> parse_cpu_list(const std::string& text);

/// {0,1,2,3,8} → "0-3,8". Pure.
std::string cpu_list(const std::vector<int>& cpus);

}  // namespace fleetrun::launcher
