// What the page asks for, answered by the functions that the commands use: the state of a job by its control
// socket, logs by their catalogue, servers and curves by fleetrun's own programs.
//
//   GET  /                               the page; /page.js, /logs.js, /timeline.js, /page.css, …
//   GET  /api/jobs                       [{"job_id", "pod", "mode", "began_at", "log_dir", "running"}]
//   GET  /api/jobs/POD/status            launcher/status/job_status_json
//   GET  /api/jobs/POD/verdict           launcher/failure/verdict
//   GET  /api/jobs/POD/events?from=      {"next", "more", "events": […]}: events.jsonl from that byte on
//   GET  /api/jobs/POD/lines?from=&count=    {"total", "whole", "parts": […], "lines": […]}
//   GET  /api/jobs/POD/search?text=&from=&back=    {"line"} or {"go_on"} or {}
//   GET  /api/jobs/POD/follow?after=     {"cursor", "processes": […], "lines": [[process, "text"]]}
//                                        each of these three of the logs of role=, rank=, attempt=
//   GET  /api/jobs/POD/servers           what `fleetrun ps stat --json` prints, as an array
//   GET  /api/jobs/POD/curves            what `fleetrun plot --json` prints
//   POST /api/jobs/POD/stop|signal|restart   launcher/status/control_request, without "request"
//
// A refusal is {"error", "hint"} with a status of 400 or more.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/host/run_directory.h"
#include "launcher/ui/http.h"
#include "runtime/base/unique_fd.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct UiSettings {
  std::vector<std::string> run_directories;
  std::string log_dir;              // of jobs that have ended
  std::optional<std::string> job;   // this one alone: a pod or a job id
  UniqueFd ends_with = UniqueFd();  // at its end of file the job has ended, and with it the page
  /// Each becomes the program that prints it, in a process of its own: `fleetrun ps stat --json` for a
  /// running job, `fleetrun plot --json` for log files. They may throw Error.
  std::function<void(const JobEntry&)> print_servers;
  std::function<void(const std::vector<std::string>& logs)> print_curves;
};

class UiApi {
 public:
  virtual ~UiApi() = default;
  /// Whether there is a job to be shown now.
  virtual bool has_jobs() = 0;
  /// Throws: Error.
  virtual void answer(const UiRequest& request, Respond respond) = 0;
};

std::unique_ptr<UiApi> make_ui_api(boost::asio::io_context& loop, UiSettings settings);

}  // namespace fleetrun::launcher
