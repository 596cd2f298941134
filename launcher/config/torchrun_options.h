// torchrun's command line, with its PET_ variables and its defaults, to options of ours. Pure.
//
// As with torchrun, a flag may be written with '-' or '_' and abbreviated, the last one of a flag counts, and
// what follows the script is the script's. What torchrun refuses is refused; flags of ours are not known.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "launcher/model/job_config.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// The command line itself is wrong: torchrun ends with 2 then, and with 1 for all else.
class TorchrunUsage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct TorchrunCommand {
  bool help = false;
  Options options;            // all that make_job_config needs; it is to see no other variables
  TorchrunSettings settings;  // but for the directory, which is made when the job starts
  std::string run_id;         // --rdzv-id; empty: one is to be drawn
};

/// Throws: TorchrunUsage, and Error(usage) for values that only torchrun's own checks refuse.
TorchrunCommand read_torchrun_command(const std::vector<std::string>& words, const Environ& environ);

/// What --help shows.
std::string torchrun_help();

}  // namespace fleetrun::launcher
