// Every environment variable that fleetrun, its tools, its package and the processes of a job set or read,
// but for those that only set a flag (launcher/model/job_settings): fleetrun-environment(7) is made from this
// table.
//
// The variables of an Identity come from the contract (runtime/base/env_contract.cc), the others from
// env_variables.cc. A variable that the sources name and that is in no table fails
// tests/lint/man_pages_test.py.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace fleetrun {

/// A section of the page.
enum class EnvSection {
  every,       // what a process is told: by every job
  paddle,      // … by jobs of Paddle's kinds
  collective,  // … by collective jobs, as Paddle's scripts read them
  torchrun,    // … by collective jobs, as torchrun's scripts read them
  tensorflow,  // … by collective jobs, as TensorFlow's scripts read them
  ps,          // … by parameter-server jobs
  rpc,         // … by rpc jobs
  modules,     // … about threads, devices and modules
  runtime,     // what processes of a job read, that users set
  launcher,    // what fleetrun itself reads
  schedulers,  // what fleetrun reads that Slurm and Kubernetes set
  init,        // what fleetrun-init reads in place of tini and dumb-init
  events,      // what the command of --on_event is told
  cleared,     // what no process inherits
};

struct EnvVariable {
  std::string_view names;  // separated by blanks where several mean the same
  EnvSection section;
  std::string_view meaning;
  std::string_view details = {};
  /// Of an outer fleetrun or another launcher: wrong when a process inherits it.
  bool is_stale = false;
};

/// Those that are not of an Identity.
std::span<const EnvVariable> other_variables() noexcept;

/// All of them, those of an Identity first.
std::vector<EnvVariable> env_variables();

struct EnvSectionTitle {
  EnvSection section;
  std::string_view text;
};

/// In the order of the page.
std::span<const EnvSectionTitle> env_section_titles() noexcept;

}  // namespace fleetrun
