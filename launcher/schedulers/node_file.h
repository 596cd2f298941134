// The hosts that other schedulers than Slurm, or another launcher, give a job: named by a variable, mostly in
// a file.
//
//   PBS, Torque   PBS_NODEFILE        a host a line, again for each process there
//   OAR           OAR_NODEFILE        the same
//   LSF           LSB_DJOB_HOSTFILE   the same; else LSB_MCPU_HOSTS ("h1 4 h2 4"), LSB_HOSTS ("h1 h1 h2")
//   Grid Engine   PE_HOSTFILE         host, number of slots, queue, processors
//   Open MPI      PRTE_MCA_prte_default_hostfile, OMPI_MCA_orte_default_hostfile    its host file
//   MPICH, Intel  I_MPI_HYDRA_HOST_FILE, HYDRA_HOST_FILE                            the same
#pragma once

#include <optional>
#include <string>

#include "launcher/model/host_list.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

struct NodeFile {
  std::string title;     // "PBS job 12.head"
  std::string variable;  // "PBS_NODEFILE"
  RemoteHosts hosts;     // with their numbers of processes as slots; none: its file cannot be read here
  std::string ssh;       // what that scheduler has in the place of ssh; empty: nothing
};

/// nullopt: nothing of these started this. Throws: Error(config) for a file that is not a list of hosts.
std::optional<NodeFile> node_file(const Environ& environ);

/// How this process is known to be one of several that were started at once ("OMPI_COMM_WORLD_SIZE is 4"), of
/// which each would start the whole job; empty: it is not.
std::string started_several_times(const Environ& environ);

}  // namespace fleetrun::launcher
