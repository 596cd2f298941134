// What a job that is started as torchrun starts one has beyond ours: cli/torchrun_command.
//
//   RUN/attempt_0/1/stdout.log     of local rank 1, where --redirects or --tee ask for it; so stderr.log
//   RUN/attempt_0/1/error.json     TORCHELASTIC_ERROR_FILE, which PyTorch's @record writes
//   RUN/.fleetrun                  our own directory of logs
//
// RUN is made in --log-dir and named after the run's id.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>

namespace fleetrun::launcher {

struct Streams {
  bool out = false, err = false;
  bool operator==(const Streams&) const = default;
};

/// "3" is both streams of every process, "0:3,1:1" those of the local ranks that are named.
struct StreamsByRank {
  Streams all;
  std::map<int, Streams> ranks;

  Streams of(int local_rank) const {
    const auto found = ranks.find(local_rank);
    return found == ranks.end() ? all : found->second;
  }
  bool operator==(const StreamsByRank&) const = default;
};

struct TorchrunSettings {
  StreamsByRank redirects, tee;
  std::set<int> shown;                          // local ranks; empty: all
  std::string prefix;                           // before lines of --tee: "[${role_name}${local_rank}]:"
  std::string log_dir;                          // as given; empty: a temporary one
  std::string directory;                        // RUN, absolute; empty: there is none (--log-dir=/dev/null)
  std::chrono::milliseconds last_call{30'000};  // for more hosts, once the least number is there
  bool virtual_local_rank = false;
  std::string visible_devices;  // of virtual local ranks: the list that fleetrun inherited
  bool operator==(const TorchrunSettings&) const = default;
};

/// Where a process's output goes, as torchrun has it.
struct OutputPlan {
  enum class To { terminal, file, nowhere };
  To out = To::terminal, err = To::terminal;
  Streams shown;          // of those in a file
  std::string prefix;     // before each shown line
  std::string directory;  // RUN; empty: there is none

  /// The directory of one attempt of the process.
  std::string place(int attempt, int local_rank) const {
    return directory + "/attempt_" + std::to_string(attempt) + "/" + std::to_string(local_rank);
  }
  bool operator==(const OutputPlan&) const = default;
};

}  // namespace fleetrun::launcher
