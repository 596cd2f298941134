// What Slurm tells a process of the hosts that it has been given: the SLURM_* variables as a value. Pure.
//
// Three places look different to a process, and fleetrun does something else in each:
//
//   where                              what is set                        fleetrun's part
//   batch script, salloc's shell       SLURM_JOB_ID, SLURM_JOB_NODELIST   controller: an agent per host
//                                                                         through srun
//   `srun fleetrun …`, one per host    the same, SLURM_STEP_ID, …         node: these meet at the first host
//   the same on one host alone         the same                           alone: a job of one host, as
//                                                                         without Slurm
//
// A heterogeneous job (salloc -N1 : -N2) tells the hosts of each component by variables of its own, which end
// with _HET_GROUP_N. A step has the hosts of the components that srun was given (--het-group; by itself the
// first one).
//
// A batch script has SLURM_PROCID and SLURM_NODEID too, so that only SLURM_STEP_ID tells a step; Slurm gives
// the script, and the shell of an interactive step, numbers above all of those that steps get.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/model/host_list.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// The step that this process is a task of.
struct SlurmStep {
  std::uint32_t id = 0;
  int node = 0;  // number of this host in it

  bool operator==(const SlurmStep&) const = default;
};

struct SlurmAllocation {
  std::string job;                 // "1234"
  std::vector<std::string> hosts;  // of the step, in one, else of the whole allocation; in Slurm's order
  std::vector<int> tasks;          // on each of them; empty: nobody has asked for a number of tasks
  bool devices = false;  // there are GPUs on this host: as many trainers as these, unless tasks are asked for
  std::string here;      // Slurm's name of this host; empty: it is none of them (salloc on a login host)
  std::optional<SlurmStep> step;
  int components = 1;  // of a heterogeneous job, whose hosts are those of all of them, in their order

  bool operator==(const SlurmAllocation&) const = default;
};

enum class SlurmPart { alone, controller, node };

/// nullopt: this is not an allocation of Slurm's.
/// Throws: Error(config) for variables that are missing, that cannot be read or that disagree, and for more
/// hosts than kMaxNamedHosts. The message names the variable and its value.
std::optional<SlurmAllocation> slurm_allocation(const Environ& environ);

/// Throws: Error(config) where a step has more than one fleetrun on a host.
SlurmPart slurm_part(const SlurmAllocation& allocation);

/// The hosts of a controller, with the trainers that were asked for as tasks.
std::vector<RemoteHost> slurm_hosts(const SlurmAllocation& allocation);

/// Where the launchers of a step meet: a port of the first host, outside of those that the kernel gives to
/// connections. Equal for all of them, and another one for each step.
std::uint16_t slurm_rendezvous_port(const SlurmAllocation& allocation) noexcept;

/// "2(x3),1" → {2, 2, 2, 1}. nullopt for anything else, and beyond `max` numbers.
std::optional<std::vector<int>> parse_task_counts(std::string_view text, std::size_t max);

}  // namespace fleetrun::launcher
