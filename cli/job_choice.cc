#include "cli/job_choice.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "launcher/logs/log_catalog.h"
#include "runtime/base/error.h"
#include "runtime/base/terminal_text.h"
#include "runtime/base/text.h"
#include "runtime/base/write_all.h"

namespace fleetrun::cli {
namespace {

// Where a job's logs are: LOG_DIR/POD.
struct PodPlace {
  std::string log_dir, pod;
};

/// Of a path in the logs of a job, as a shell completes it: log, log/POD, log/workerlog.0.
std::optional<PodPlace> place_of(const std::string& path) {
  std::error_code error;
  const auto found = std::filesystem::canonical(path, error);
  if (error) return std::nullopt;
  if (const auto pod = launcher::find_pod(found, std::nullopt)) return PodPlace{found, *pod};
  for (auto folder = found; folder.has_relative_path(); folder = folder.parent_path()) {
    const std::string log_dir = folder.parent_path(), name = folder.filename();
    if (launcher::find_pod(log_dir, name) == name) return PodPlace{log_dir, name};
  }
  if (!std::filesystem::is_regular_file(found, error)) return std::nullopt;
  const std::string log_dir = found.parent_path();
  const auto pod = launcher::find_pod(log_dir, std::nullopt);
  return pod ? std::optional(PodPlace{log_dir, *pod}) : std::nullopt;
}

bool is_called(const launcher::JobEntry& entry, const std::string& name) {
  return name == entry.pod || name == entry.job_id;
}

}  // namespace

launcher::JobEntry choose_job(std::string_view command, const std::vector<std::string>& words,
                              const Environ& environment) {
  if (words.size() > 1)
    throw Error(ErrorKind::usage,
                "fleetrun " + std::string(command) + " is about one job, not " + std::to_string(words.size()),
                "fleetrun " + std::string(command) + " --help says how it is called");
  const auto jobs = launcher::list_jobs(launcher::run_directories(environment, ::geteuid()));
  if (words.empty()) return launcher::select_job(jobs, std::nullopt);
  const std::string& name = words.front();
  const bool runs = std::ranges::any_of(jobs, [&](const auto& entry) { return is_called(entry, name); });
  const auto place = runs ? std::nullopt : place_of(name);
  return launcher::select_job(jobs, place ? place->pod : name);
}

std::string choose_pod_directory(const std::optional<std::string>& log_dir,
                                 const std::optional<std::string>& job, const Environ& environment) {
  const std::string from_environment = environment.value_or("PADDLE_LOG_DIR", "");
  const std::string directory = log_dir.value_or(from_environment.empty() ? "log" : from_environment);
  std::vector<launcher::JobEntry> jobs;
  if (!log_dir) jobs = launcher::list_jobs(launcher::run_directories(environment, ::geteuid()));
  const bool runs =
      job && std::ranges::any_of(jobs, [&](const auto& entry) { return is_called(entry, *job); });
  const auto pod = runs ? std::nullopt : launcher::find_pod(directory, job);
  if (pod) return directory + "/" + *pod;
  if (runs || (!jobs.empty() && !job)) {
    const launcher::JobEntry entry = launcher::select_job(jobs, job);
    return entry.log_dir + "/" + entry.pod;
  }
  if (const auto place = job ? place_of(*job) : std::nullopt) return place->log_dir + "/" + place->pod;
  const auto hosts = launcher::list_host_directories(directory);
  throw Error(ErrorKind::host,
              "there are no logs" + (job ? " of job " + printable(*job) : std::string()) + " in " +
                  printable(directory),
              hosts.empty() ? "name the directory of the logs with --log_dir"
                            : "each host has its own, for example --log_dir=" + shell_words({hosts.front()}));
}

std::string choose_pod_directory(const std::string& command, const CommandArguments& words,
                                 const Environ& environment) {
  if (words.words.size() > 1)
    throw Error(ErrorKind::usage,
                command + " is about one job, and " + std::to_string(words.words.size()) + " are named");
  const auto job = words.words.empty() ? std::nullopt : std::optional(words.words.front());
  return choose_pod_directory(words.value("log_dir"), job, environment);
}

void write_text(int fd, std::string_view text) {
  write_bytes(fd, text_for(fd, text));
}

void write_bytes(int fd, std::string_view bytes) {
  if (write_all(fd, bytes) || fd != STDOUT_FILENO || errno == EPIPE || errno == EIO) return;
  throw Error(ErrorKind::host,
              "standard output cannot be written: " + std::generic_category().message(errno));
}

std::string name_of(const launcher::JobEntry& job) {
  return "job " + printable(job.job_id) + " (pod " + printable(job.pod) + ")";
}

}  // namespace fleetrun::cli
