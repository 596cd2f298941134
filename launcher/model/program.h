// What is run, found (launcher/host/find_program), or why it cannot be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace fleetrun::launcher {

constexpr int kNotFound = 127, kNotStartable = 126;  // exit statuses, as shells use them

// A job of fleetrun's own (launcher/host/run_check).
constexpr std::string_view kRunCheck = "run_check";                 // as the user writes it
constexpr std::string_view kRunCheckProcess = "run-check-process";  // fleetrun's first argument in the job

struct Program {
  std::string path;               // of the file to execute
  std::vector<std::string> argv;  // argv[0] as the user wrote it
  std::string interpreter;        // absolute; empty when none was needed
  std::string file = {};          // the script's, or the executable's; empty for a module

  bool operator==(const Program&) const = default;
};

/// The script is not there (127) or cannot be executed (126).
struct ProgramRefusal {
  int exit_status = kNotFound;
  Error error;
};

}  // namespace fleetrun::launcher
