// The hosts that PBS, LSF and Grid Engine give a job: a file on each of its hosts, named by a variable.
//
//   PBS, Torque   PBS_NODEFILE        a host a line, again for each process there
//   LSF           LSB_DJOB_HOSTFILE   the same
//   Grid Engine   PE_HOSTFILE         host, number of slots, queue, processors
#pragma once

#include <optional>
#include <string>

#include "launcher/model/host_list.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

struct NodeFile {
  std::string title;     // "PBS job 12.head"
  std::string variable;  // "PBS_NODEFILE"
  RemoteHosts hosts;     // with their numbers of processes as slots
};

/// nullopt: no such scheduler started this, or its file cannot be read here.
/// Throws: Error(config) for a file that is not a list of hosts.
std::optional<NodeFile> node_file(const Environ& environ);

}  // namespace fleetrun::launcher
