// The processes of this machine as /proc shows them: who is below whom, and what one of them is doing.
// Nothing throws; a process that ends while it is looked at is left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace fleetrun::launcher {

/// The whole of a small file, /proc's included; empty when it cannot be read.
std::string read_whole(const std::string& path);

/// Every living descendant of the process `root`. Zombies are left out.
std::vector<pid_t> descendants_of(pid_t root);

/// The children of this process, which has one thread; dead ones that nobody has waited for are among them.
std::vector<pid_t> own_children();

/// The session of the process; -1 when it is gone.
pid_t session_of(pid_t pid);

struct KernelProcess {
  std::string name;   // of its program, as the kernel knows it; empty: the process is gone
  std::string state;  // one letter: "R", "S", "D", "T", "Z" …
  std::string where;  // the kernel function it waits in; empty: not known
  pid_t parent = 0;
};

KernelProcess state_of(pid_t pid);

/// "python train.py --lr 1", the first 80 bytes of it; the name of its program where it shows no arguments.
/// Empty: the process is gone.
std::string command_of(pid_t pid);

}  // namespace fleetrun::launcher
