// Where running jobs are found: a directory of this user's with one entry per job.
//
//   $FLEETRUN_RUN_DIR, or $XDG_RUNTIME_DIR/fleetrun, or /tmp/fleetrun-UID: mode 0700, this user's, no
//     symbolic link
//     POD.json      job id, pod, pid and start time of fleetrun, log directory …; replaced by rename
//     POD.sock      the control socket (launcher/status/control_server)
//     POD.secret    what the job's processes prove themselves with (launcher/host/secret_file)
//     POD.server.N.figures   what parameter server N says of itself (launcher/status/server_metrics)
//
// An entry is made when the first process of a job runs, and removed when the job ends. A fleetrun that was
// killed leaves its entry; whoever lists jobs removes it: its pid is gone, or belongs to a process that began
// at another time. An entry from another pid namespace (a container that shares the directory) is judged by
// its socket: nobody listens there any more. A directory that is not safe is not used: the job then runs
// without an entry.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/environ.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

struct JobEntry {
  std::string job_id, pod, mode;
  pid_t pid = -1;                   // of fleetrun
  std::uint64_t start_ticks = 0;    // when it began, since the machine did
  std::uint64_t pid_namespace = 0;  // in which `pid` means something
  std::int64_t began_at = 0;        // nanoseconds since 1970
  int processes = 0;
  std::string log_dir;
  std::string launch_log;  // the file with the LAUNCH lines; empty: they are on a terminal or pipe
  std::string metrics;     // where metrics are served; empty: nowhere
  bool detached = false;
  std::string directory, name;  // where the entry is: DIRECTORY/NAME.json; not in the file

  bool operator==(const JobEntry&) const = default;
};

/// A line with all of it but where it is.
std::string to_json(const JobEntry& entry);

/// The directories in which jobs of `uid` may be, the one to write to first.
std::vector<std::string> run_directories(const Environ& environment, uid_t uid);

/// An entry of this process's job, there as long as this object is.
class RunEntry {
 public:
  RunEntry() = default;
  /// Writes the entry into the first of `directories` that is safe (and makes it). `entry` says everything
  /// about the job; pid, start time, directory and name are filled in here. `before` is called when those are
  /// known and nobody can see the entry yet: it makes the socket.
  /// Throws: Error(host) when there is none, and what `before` throws.
  RunEntry(const std::vector<std::string>& directories, JobEntry entry,
           const std::function<void(const RunEntry&)>& before = {});
  RunEntry(RunEntry&&) noexcept = default;
  RunEntry& operator=(RunEntry&& other) noexcept;
  ~RunEntry() { remove(); }

  explicit operator bool() const noexcept { return bool(directory_); }
  const JobEntry& entry() const noexcept { return entry_; }
  /// The directory's descriptor; sockets are bound below /proc/self/fd of it, since their paths are short.
  int directory() const noexcept { return directory_.value(); }
  std::string socket_name() const { return entry_.name + ".sock"; }

  void remove() noexcept;

 private:
  void write() const;

  UniqueFd directory_;
  JobEntry entry_;
};

/// Of launchers that were killed before they had an entry, or after it was removed.
void remove_abandoned_secrets(int directory) noexcept;

/// The jobs that run, oldest first. Stale entries are removed on the way.
std::vector<JobEntry> list_jobs(const std::vector<std::string>& directories,
                                const std::string& proc = "/proc");

/// A connection to the control socket of a job, or why there is none.
struct ControlConnection {
  UniqueFd socket;
  int error = 0;  // an errno; 0: connected
};

/// Does not wait. Throws: Error(host) when no socket can be made.
ControlConnection connect_to(const JobEntry& entry);

/// "POD.server.RANK.figures".
std::string metrics_file_name(std::string_view pod, int rank);

/// Removes what the parameter servers of `pod` have left in the directory.
void remove_metrics(int directory, const std::string& pod) noexcept;

/// The one job that `name` means: a pod, or a job id; nullopt: the only one that runs.
/// Throws: Error(usage) when there is none or more than one; the message lists them.
JobEntry select_job(const std::vector<JobEntry>& jobs, const std::optional<std::string>& name);

/// Opens `path` if it is a directory of this user's that nobody else may enter; makes it when `make`.
/// nullopt, with the reason in `why`, when it is not.
std::optional<UniqueFd> open_private_directory(const std::string& path, bool make, std::string& why);

struct PrivateDirectory {
  std::string path;
  UniqueFd opened;
};

/// The first of `directories` that is safe; it is made where it lacks.
/// nullopt, with the reasons in `why`, when none is.
std::optional<PrivateDirectory> first_private_directory(const std::vector<std::string>& directories,
                                                        std::string& why);

}  // namespace fleetrun::launcher
