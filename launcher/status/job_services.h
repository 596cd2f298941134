// What makes a running job visible and lets it be told things from outside, as one part of the supervisor's:
// its status, events.jsonl, its entry among the running jobs, the control socket, metrics.
//
// Nothing of this can fail a job, with one exception: metrics that were asked for and cannot be served are
// refused before anything starts. What costs system calls (files, sockets) is made in the turn of the loop
// after the first process was started, so that starting a job does not wait for it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/run/heartbeat.h"
#include "launcher/run/job_control.h"
#include "launcher/run/server_count.h"
#include "launcher/status/metrics_server.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

struct ServiceSettings {
  std::vector<std::string> run_directories;  // host/run_directory; empty: no entry, no control socket
  std::string metrics_directory;             // where servers write their metrics; empty: nowhere
  std::optional<MetricsAddress> metrics;
  std::shared_ptr<const HeartbeatReader> heartbeats;  // for metrics
  std::shared_ptr<ServerCount> servers;               // whom a resize is passed on to
  std::string launch_log;                             // where the LAUNCH lines go, when that is a file
  bool detached = false;
  Environ environment;  // of fleetrun
};

/// The part. Making it throws Error(host) when metrics cannot be served.
MakeJobPart job_services(ServiceSettings settings);

}  // namespace fleetrun::launcher
