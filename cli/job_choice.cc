#include "cli/job_choice.h"

#include <unistd.h>

#include <cerrno>

#include "runtime/base/error.h"
#include "runtime/base/terminal_text.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {

launcher::JobEntry choose_job(std::string_view command, const std::vector<std::string>& words,
                              const Environ& environment) {
  if (words.size() > 1)
    throw Error(ErrorKind::usage,
                "fleetrun " + std::string(command) + " is about one job, not " + std::to_string(words.size()),
                "fleetrun " + std::string(command) + " --help says how it is called");
  const auto jobs = launcher::list_jobs(launcher::run_directories(environment, ::geteuid()));
  return launcher::select_job(jobs, words.empty() ? std::nullopt : std::optional(words.front()));
}

void write_text(int fd, std::string_view text) {
  write_bytes(fd, text_for(fd, text));
}

void write_bytes(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string name_of(const launcher::JobEntry& job) {
  return "job " + printable(job.job_id) + " (pod " + printable(job.pod) + ")";
}

}  // namespace fleetrun::cli
