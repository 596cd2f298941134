// How the processes of a pod are held so that none outlives it: a cgroup of their own where one can be made,
// and the fact that a subreaper inherits every orphan below it.
//
// Used by fleetrun-init, and by fleetrun for the case that init itself was killed. Single-threaded. Nothing
// throws.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launcher/init/init_protocol.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// A leaf of the cgroup v2 tree. Empty when none can be made (no v2 mount, read-only, not ours): that is an
/// ordinary result.
struct CgroupLeaf {
  std::string path;
  UniqueFd directory;   // for CLONE_INTO_CGROUP
  std::string refusal;  // why it is empty: "no cgroup v2 is mounted"
};

/// A leaf below the caller's own cgroup, which no other init uses, in whatever container it is.
CgroupLeaf make_cgroup_leaf(const std::string& pod);

/// The leaf at `path`.
CgroupLeaf make_cgroup(const std::string& path);

/// SIGKILL to everything in the cgroup at `path`, at once, by the kernel. False when that is not possible.
bool kill_cgroup(const std::string& path);

/// The processes in the cgroup at `path`, not those in cgroups below it.
std::vector<pid_t> processes_in_cgroup(const std::string& path);

/// Is there no process in the cgroup at `path` or below it?
bool cgroup_is_empty(const std::string& path);

/// Removes the empty cgroup and those below it; retries for as long as the kernel needs to see that it is
/// empty.
void remove_cgroup(const std::string& path);

/// Removes the empty leaves beside the one at `path` whose inits, by the pids in their names, are gone: those
/// that were killed together with their fleetrun could not do it. Those of other pid namespaces stay.
void remove_stale_cgroups(const std::string& path);

/// One pass of killing everything below this process: the cgroup at once (if `cgroup_path` is not empty), and
/// every descendant by pid. A pass may miss a process that is being forked meanwhile, so callers repeat it
/// until waitpid() says ECHILD: a subreaper without children has no descendants.
void kill_everything_below(const std::string& cgroup_path);

}  // namespace fleetrun::launcher
