// A job's status as JSON, for `fleetrun status --json`, the control socket and whoever wants to look on.
//
//   {"schema":1,"job_id":"default","pod":"abcdef","mode":"collective","phase":"running","phase_reason":"",
//    "attempt":0,"containment":"cgroup2","cgroup":"…","log_dir":"…","fleetrun_pid":1,"init_pid":2,
//    "uptime_seconds":1.5,"servers":["127.0.0.1:8011"],"logs_truncated":false,"exit_status":null,
//    "processes":[{"role":"trainer","rank":0,"name":"trainer 0","pid":4711,"state":"running","attempt":0,
//                  "starts":1,
//                  "uptime_seconds":1.2,"exit":null,"cause":"","log":"…",
//                  "cpu_seconds":0.3,"rss_bytes":1048576,"processes":2,"kernel_state":"S",
//                  "last_line":"epoch 3","log_bytes":512,
//                  "figures":null}],
//    "restarts":[{"next_attempt":1,"scope":"group","process":"trainer 1","kind":"crash","cause":"…",
//                 "why":"…"}]}
//
// `exit` is null or {"status":…,"code":…} or {"status":…,"signal":"SIGKILL","core":false}; status is the
// shell's. cpu_seconds, rss_bytes, processes and kernel_state are null for a process that does not live;
// figures are the metrics of a parameter server (launcher/status/server_metrics), null for other processes; a
// reader ignores fields that it does not know, and schema grows when a field changes its meaning. Pure.
#pragma once

#include <string>
#include <string_view>

#include "launcher/status/job_status.h"

namespace fleetrun::launcher {

constexpr int kStatusSchema = 1;

/// One line without its newline. Bytes that are not UTF-8 become U+FFFD.
std::string to_json(const JobStatus& status);

/// Reads what to_json wrote. Times become relative: `began_at` is 0, `now` the uptime.
/// Throws: Error(data) for anything else.
JobStatus job_status_from_json(std::string_view text);

}  // namespace fleetrun::launcher
