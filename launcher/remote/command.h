// A command with pipes on its standard descriptors, in a session of its own: what a terminal sends to
// fleetrun (Ctrl-C) does not reach it, and it cannot ask anybody anything.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher::remote {

struct CommandLine {
  std::vector<std::string> argv;         // argv[0] is looked for in PATH where it has no '/'
  std::string program;                   // instead of argv[0]; empty: that
  std::vector<std::string> environment;  // NAME=VALUE, all of it
  int input = -1;                        // its standard input, borrowed; -1: a pipe
  bool killed_with_children = false;     // as ssh is with the commands that lead it somewhere
};

struct Command {
  pid_t pid = -1;
  pid_t kill_target = -1;         // of kill(): itself, or its process group
  UniqueFd ended;                 // readable when it has ended
  UniqueFd input, output, error;  // our ends; they do not block
};

/// Throws: Error(spawn) where the program is not there, cannot be executed, or descriptors are short.
Command start_command(const CommandLine& line);

/// Waits for a command whose `ended` is readable. Returns its exit status as a shell has it:
/// 128 + n for signal n.
int exit_status_of(const Command& command);

}  // namespace fleetrun::launcher::remote
