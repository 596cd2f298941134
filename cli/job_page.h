// The page of `fleetrun --ui`: served by a process of its own, so that a long log or a slow browser costs the
// job nothing, which ends with the job, and with fleetrun however that ends.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "cli/launch_log.h"
#include "launcher/session/session_console.h"
#include "launcher/ui/api.h"
#include "runtime/base/endpoint.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::cli {

/// How the line with its address begins.
constexpr const char* kPage = "Page: ";

class JobPage final : public launcher::SessionPage {
 public:
  /// Forks: one thread only may run. Throws: Error where the page cannot be served.
  JobPage(const Endpoint& address, launcher::UiSettings settings);
  /// Waits for what serve.h says of the end.
  ~JobPage() override;
  JobPage(const JobPage&) = delete;
  JobPage& operator=(const JobPage&) = delete;

  const std::string& url() const noexcept { return url_; }
  /// For this host alone.
  bool is_local() const noexcept { return is_local_; }

 private:
  std::string url_;
  bool is_local_ = true;
  UniqueFd job_;  // its end is the job's
  pid_t pid_ = -1;
};

/// Says its address in `log`, once and whatever the level.
std::unique_ptr<JobPage> serve_job_page(const Endpoint& address, launcher::UiSettings settings,
                                        LaunchLog& log);

}  // namespace fleetrun::cli
