// The logs that lie in a log directory, of jobs that run and of past ones: LOG_DIR/POD/ATTEMPT/workerlog.N.
// Only reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

/// One log of one attempt.
struct FoundLog {
  std::string role;  // "trainer", "server", or the job file's own
  int rank = 0;
  int attempt = 0;
  std::vector<std::string> paths;  // rotated parts, oldest first, then the log itself
  bool operator==(const FoundLog&) const = default;
};

/// Role and rank of a log by its name: "workerlog.3" is trainer 3, "serverlog.0" server 0.
/// Nothing for other names.
std::optional<FoundLog> log_of_name(std::string_view name);

/// The pods whose logs are in `log_dir`, newest first.
std::vector<std::string> list_pods(const std::string& log_dir);

/// The directories in `log_dir` that have pods: a job over a list of hosts has one for each.
std::vector<std::string> list_host_directories(const std::string& log_dir);

/// The pod that `name` means: a pod in `log_dir`, or the newest of a job of that id;
/// without a name the newest.
std::optional<std::string> find_pod(const std::string& log_dir, const std::optional<std::string>& name);

/// By attempt, role and rank.
std::vector<FoundLog> list_logs(const std::string& pod_directory);

/// Whether what is beside the logs says that nothing is written to them any more: the job's last event is
/// there, or its fleetrun is gone.
bool job_is_over(const std::string& pod_directory);

}  // namespace fleetrun::launcher
