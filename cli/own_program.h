// Programs of fleetrun's own that it runs as git runs its own: fleetrun-ps, fleetrun-data. They need
// libraries that the launcher does without.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

struct OwnProgram {
  std::string name;     // "fleetrun-ps"
  std::string command;  // what runs it: "fleetrun ps"
  std::string part;     // what has to be installed: "the parameter server"
};

/// The program's path: beside fleetrun or in libexec. Throws: Error(spawn) when it is not there.
std::string find_own_program(const OwnProgram& program);

/// Becomes the program at `path`. Throws: Error(spawn) when it cannot be executed.
[[noreturn]] void execute_own_program(const OwnProgram& program, const std::string& path,
                                      const std::vector<std::string>& arguments);

/// Runs the program at `path` and waits for it. Returns its exit status, 128 + the signal that ended it.
/// Throws: Error(spawn) when it cannot be executed.
int run_own_program(const OwnProgram& program, const std::string& path,
                    const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
