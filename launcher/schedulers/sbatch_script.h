// The batch script of `fleetrun slurm`: what sbatch needs to know,
// and how a job ends in time and comes back. Pure.
//
// The script is also a lesson: it can be kept, read and changed.
// Its arguments are quoted, whatever their bytes are.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fleetrun::launcher {

struct SbatchSpec {
  std::string name;         // of the job
  std::string nodes = "1";  // N or MIN-MAX
  std::optional<std::string> time, partition, account, qos, gpus_per_node, cpus_per_node, mem, output;
  std::vector<std::string> options;  // others of sbatch's, as they are written: "--exclusive"
  int notice_seconds = 60;           // before the end of the time
  bool requeue = true;
  std::string fleetrun;                // the program
  std::vector<std::string> arguments;  // fleetrun's flags, the script and its arguments
  std::string made_by;                 // the command line that asked for it, for people
};

/// Throws: Error(usage) for a value that sbatch could not read back:
/// blanks, quotes and control bytes are refused.
std::string sbatch_script(const SbatchSpec& spec);

/// A time limit as Slurm reads one: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or UNLIMITED.
bool is_slurm_time(std::string_view text) noexcept;

}  // namespace fleetrun::launcher
