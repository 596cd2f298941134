// Starts one process of the pod, from inside fleetrun-init.
//
// The child gets a session of its own, default signal dispositions and an empty mask, the log as standard
// output and error, the descriptors that are passed to it, and no other. It dies with init
// (PR_SET_PDEATHSIG). It waits at a gate before it becomes its program, until init has recorded it: a child
// that ends at once is not lost. Nothing waits for exec: when it fails, the child writes the step and errno
// into a shared slot and ends, and whoever reaps it looks there, so a slow exec holds nobody up.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "launcher/init/init_protocol.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// What a child writes when it could not become its program.
struct ExecFault {
  std::int32_t stage = 0;  // 0: no fault; else see exec_stage_name()
  std::int32_t error = 0;
};

/// "", "fork", "session", "descriptors", "cpus", "memory nodes", "directory", "exec"
const char* exec_stage_name(std::int32_t stage) noexcept;

class StartSlots;

/// Memory shared with one child: the gate that it waits at, and its fault.
class StartSlot {
 public:
  StartSlot(StartSlot&& other) noexcept;
  StartSlot& operator=(StartSlot&& other) noexcept;
  ~StartSlot();

  void open_gate() noexcept;
  /// In the child. Returns when the gate is open; the death of init ends the child meanwhile.
  void wait_at_gate() noexcept;

  ExecFault& fault() noexcept { return shared_->fault; }

 private:
  friend class StartSlots;
  struct alignas(64) Shared {
    std::atomic<std::uint32_t> open = 0;
    ExecFault fault;
  };
  StartSlot(StartSlots& owner, Shared* shared) noexcept : owner_(&owner), shared_(shared) {}

  StartSlots* owner_;
  Shared* shared_;
};

/// The slots of all children, in few mappings: each fork copies every mapping of init. Outlives its slots.
class StartSlots {
 public:
  StartSlots() = default;
  StartSlots(const StartSlots&) = delete;
  StartSlots& operator=(const StartSlots&) = delete;
  ~StartSlots();

  /// A slot with its gate closed and no fault. Empty when there is no memory left.
  std::optional<StartSlot> take() noexcept;

 private:
  friend class StartSlot;
  static constexpr std::size_t kPerBlock = 256;
  std::vector<StartSlot::Shared*> blocks_, free_;
};

struct StartedProcess {
  pid_t pid = -1;                 // -1: it could not be forked, see `fault`
  UniqueFd pidfd;                 // may be empty on an old kernel
  std::optional<StartSlot> slot;  // its gate is closed
  ExecFault fault;                // of init, not of the child
};

struct StartContext {
  std::vector<std::string> base_environment;  // NAME=VALUE: init's own
  int cgroup_directory = -1;     // -1: none. Set to -1 by start_process when the kernel refuses it
  pid_t init_pid = 0;            // as the child's getppid() says it
  std::uint64_t open_files = 0;  // soft RLIMIT_NOFILE of the child; 0: unchanged
  StartSlots slots = {};
};

/// The descriptors of one start, borrowed.
struct StartDescriptors {
  int log = -1;
  int input = -1;
  std::span<const UniqueFd> passed;  // in the order of StartFrame::passed
};

/// Single-threaded callers only; all signals must be blocked. The caller records the process and then opens
/// its gate.
StartedProcess start_process(const StartFrame& spec, const StartDescriptors& descriptors,
                             StartContext& context);

}  // namespace fleetrun::launcher
