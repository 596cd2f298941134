// The stacks of a job's processes, told in a screenful: equal ones together, the odd one out named. Pure.
//
// In a job that hangs, most processes wait at the same place for one that is somewhere else: that one is the
// fault. Frames are compared without what differs from process to process (addresses, values of arguments),
// by the main thread first, and by the other threads where the main threads are all alike. A process that
// only waits for one that it started (a shell, a wrapper) is represented by the busiest one below it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

struct StackFrame {
  std::string function;  // "main", "Queue.get", "futex()" for a system call
  std::string where;     // "train.py:40", "libc.so.6"; empty: not known
  bool system = false;   // of the C library, Python's own library or the kernel
  bool operator==(const StackFrame&) const = default;
};

/// "main (train.py:40)"
std::string to_string(const StackFrame& frame);

struct ThreadStack {
  std::string name;
  std::vector<StackFrame> frames;  // innermost first
  bool operator==(const ThreadStack&) const = default;
};

/// One process of the operating system, looked at. The main thread comes first.
struct ProcessStacks {
  std::size_t index = 0;  // in the plan, of the job's process that it is or belongs to
  std::string role;
  int rank = 0;
  pid_t pid = 0;
  bool leader = true;   // the job's process itself; its descendants follow, the busiest first
  std::string program;  // its short name
  std::string source;   // who read `threads`: "py-spy", "fleetrun", "gdb"; empty: nobody
  std::vector<ThreadStack> threads;
  std::vector<ThreadStack>
      kernel;           // by /proc: the system call of each thread, and where in the kernel it waits
  std::string trouble;  // why `threads` are not there
};

// What the tools print → threads.
std::vector<ThreadStack> parse_gdb_stacks(std::string_view text);
std::vector<ThreadStack> parse_py_spy_stacks(std::string_view text);

/// Threads of one process with the same stack.
struct ThreadGroup {
  std::size_t count = 0;
  std::vector<StackFrame> frames;
};

/// Processes of one role at the same place.
struct StackGroup {
  std::string role;
  std::vector<std::size_t> indices;  // in the plan
  std::vector<int> ranks;            // of the same processes
  std::vector<StackFrame> frames;    // of the main thread
  std::vector<ThreadGroup> others;   // the other threads of the first of the processes
  std::string source;                // "py-spy", "gdb" or "/proc"
};

struct StackReport {
  std::vector<StackGroup> groups;  // by role, the largest first
  std::vector<std::size_t> odd;  // not where most of their role are; none where no place holds more than half
  std::vector<std::string> notes;  // what could not be read
};

StackReport group_stacks(const std::vector<ProcessStacks>& processes);

/// The place where a stack is, in a few words: "pthread_barrier_wait, called by worker (train.c:4)".
std::string place_of(const std::vector<StackFrame>& frames);

/// "3 trainers (0,1,3) in pthread_barrier_wait, called by …; trainer 2 in sleep, called by …"
std::string summary(const StackReport& report);

/// The groups with their frames, for a terminal. Each line ends with a newline.
std::string to_text(const StackReport& report);

/// {"groups": [{"role", "ranks", "indices", "source", "frames", "threads":
/// [{"count", "frames"}]}], "odd", "notes"}
std::string to_json(const StackReport& report);

/// Every thread of every process, for a file.
std::string all_stacks_text(const std::vector<ProcessStacks>& processes);

}  // namespace fleetrun::launcher
