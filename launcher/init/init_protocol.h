// What fleetrun and fleetrun-init say to each other over the lifeline, a stream socket between the two.
//
//   frame := u32 length of what follows | u8 type | fields      (runtime/base/codec)
//
//   to init:    setup, then start | signal | sweep | lease, then finish
//   from init:  contained, then started | failed | exited | swept | unkillable | stands | lapsed | told,
//               then emptied
//
// `start` carries open descriptors beside its bytes (SCM_RIGHTS): the log, then standard input where it has
// one, then those that are passed on. They arrive in order with the bytes. End of file on the lifeline means
// that the other side is gone, which for init is the order to kill everything.
// Encoding and decoding are pure.
//
// Pids are those that fleetrun sees. Times are CLOCK_MONOTONIC nanoseconds, when init saw it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fleetrun::launcher {

constexpr std::uint32_t kEveryProcess = 0xffffffff;

/// How tightly a pod is held; a higher one includes what the lower ones give.
enum class ContainmentLevel : std::uint8_t { subreaper, cgroup2, pidns };

std::string_view to_string(ContainmentLevel level) noexcept;
std::optional<ContainmentLevel> parse_containment_level(std::string_view text) noexcept;

/// The first frame: what to name, how to hold the pod, and what to remove when it is gone.
struct SetupFrame {
  std::string pod_name;
  std::vector<std::string> remove_files;        // then
  std::vector<std::string> remove_directories;  // in this order, only if empty
  std::uint64_t open_files = 0;                 // soft RLIMIT_NOFILE of the processes; 0: as init's own
  std::optional<ContainmentLevel> containment;  // as asked for; nullopt: the best that costs nothing
  std::optional<ContainmentLevel> required;     // below it, init starts nothing and ends
  bool operator==(const SetupFrame&) const = default;
};

struct StartFrame {
  std::uint32_t index = 0;
  std::string program;  // a path; no search
  std::vector<std::string> argv;
  std::vector<std::string>
      environment;                   // NAME=VALUE, over what init inherited; NAME alone is taken out of it
  std::string cwd;                   // empty: init's own
  bool has_stdin = false;            // a second descriptor comes along; otherwise /dev/null
  bool controls_stdin = false;       // which becomes the controlling terminal
  std::vector<std::int32_t> passed;  // descriptors passed on: the number of each in the process, 1 and up
  std::vector<std::int32_t> cpus;    // sched_setaffinity(); empty: as init
  std::vector<std::int32_t> memory_nodes;  // preferred, see memory_policy(); empty: as init
  bool alone = false;  // it may be restarted alone: a cgroup of its own, where there are any
  bool operator==(const StartFrame&) const = default;
};

/// Sends `number` to the process's group, or to all groups; `resume` sends SIGCONT after it, for stopped
/// processes.
struct SignalFrame {
  std::uint32_t index = kEveryProcess;
  std::int32_t number = 0;
  bool resume = false;
  bool operator==(const SignalFrame&) const = default;
};

/// Kill what one process left behind (itself too, if it lives), or everything below init; `swept` follows
/// when that is gone. Nothing that is being swept may be started before.
struct SweepFrame {
  std::uint32_t index = kEveryProcess;
  bool operator==(const SweepFrame&) const = default;
};

/// Of a job of several hosts: until when the processes may run without another of these, in CLOCK_BOOTTIME
/// nanoseconds. From `stands_ns` on they stand still, until a later lease comes; at `ends_ns` they are
/// killed. 0: there is no such time.
struct LeaseFrame {
  std::int64_t stands_ns = 0, ends_ns = 0;
  bool operator==(const LeaseFrame&) const = default;
};

/// Kill what is left, prove that nothing is, and end.
struct FinishFrame {
  bool gently = false;  // first let it end by itself for a moment; what does not is named before it is killed
  bool operator==(const FinishFrame&) const = default;
};

/// How the pod is held.
struct ContainedFrame {
  std::string level;   // to_string(ContainmentLevel)
  std::string cgroup;  // the directory of its cgroup; empty: none
  std::string reason;  // why the level is not higher; empty: it is the highest, or was asked for
  std::int32_t init_pid = 0;
  bool operator==(const ContainedFrame&) const = default;
};

struct StartedFrame {
  std::uint32_t index = 0;
  std::int32_t pid = 0;
  std::int64_t time_ns = 0;
  bool operator==(const StartedFrame&) const = default;
};

/// The process could not be started: which step failed, with errno.
struct FailedFrame {
  std::uint32_t index = 0;
  std::string stage;
  std::int32_t error = 0;
  bool operator==(const FailedFrame&) const = default;
};

struct ExitedFrame {
  std::uint32_t index = 0;
  std::int32_t pid = 0;
  std::int32_t wait_status = 0;
  std::int64_t time_ns = 0;
  std::int64_t max_rss_kib = 0;  // of it and of those children that it waited for
  bool operator==(const ExitedFrame&) const = default;
};

/// What the sweep of `index` was to kill is gone.
struct SweptFrame {
  std::uint32_t index = kEveryProcess;
  bool operator==(const SweptFrame&) const = default;
};

/// The lease made the processes stand still, or a new one lets them go on.
struct StandsFrame {
  bool still = false;
  bool operator==(const StandsFrame&) const = default;
};

/// The lease is over, and everything below init is killed; exits follow.
struct LapsedFrame {
  bool operator==(const LapsedFrame&) const = default;
};

/// A process that was killed seconds ago and still exists. Init goes on waiting for it.
struct UnkillableFrame {
  std::int32_t pid = 0;
  std::string name;   // of its program, as the kernel knows it
  std::string state;  // one letter of /proc/PID/stat: "D" waits inside the kernel
  std::string where;  // the kernel function it waits in; empty: not known
  bool operator==(const UnkillableFrame&) const = default;
};

/// What the processes left running although the job was over; it is killed now.
struct LeftRunningFrame {
  std::vector<std::string> processes;  // "python x.py (pid 4243)", as many as a line has room for
  std::uint32_t others = 0;            // beside these
  bool operator==(const LeftRunningFrame&) const = default;
};

/// Init got SIGTERM: from who tells every process to end, as systemd and batch systems do, or from a process
/// that tells its parent. It is an order to the job; at a second one init kills everything.
struct ToldToEndFrame {
  bool operator==(const ToldToEndFrame&) const = default;
};

/// No process of the pod exists any more.
struct EmptiedFrame {
  bool operator==(const EmptiedFrame&) const = default;
};

using Frame = std::variant<SetupFrame, StartFrame, SignalFrame, SweepFrame, FinishFrame, ContainedFrame,
                           StartedFrame, FailedFrame, ExitedFrame, SweptFrame, UnkillableFrame, EmptiedFrame,
                           LeaseFrame, StandsFrame, LapsedFrame, LeftRunningFrame, ToldToEndFrame>;

std::string encode(const Frame& frame);

/// Takes bytes as they arrive and gives whole frames.
class FrameDecoder {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }

  /// The next whole frame, or nullopt until more bytes have come.
  /// Throws: Error(data) when the bytes are not frames of this protocol.
  std::optional<Frame> next();

 private:
  std::string buffer_;
};

}  // namespace fleetrun::launcher
