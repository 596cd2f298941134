// A job's status as Prometheus text (exposition format 0.0.4). Pure.
//
//   fleetrun_job_info{job_id,pod,mode,containment} 1  fleetrun_process_up{role,rank} 0|1
//   fleetrun_job_phase{phase} 1 for the one it is in  fleetrun_process_starts_total{role,rank}
//   fleetrun_job_attempt                              fleetrun_process_cpu_seconds_total{role,rank}
//   fleetrun_job_uptime_seconds                       fleetrun_process_resident_memory_bytes{role,rank}
//   fleetrun_job_restarts_total{kind}                 fleetrun_process_exit_status{role,rank}: as a shell's
//   fleetrun_job_processes{state}                     fleetrun_process_log_bytes{role,rank}: current log
//
//   fleetrun_training_step{role,rank}                 fleetrun_training_value{role,rank,name}
//   fleetrun_training_step_work_seconds{role,rank}
//
// The last three are what a process says of itself (launcher/run/heartbeat). A process's CPU and memory
// include what it started (launcher/host/resource_usage); both are left out while it does not live. Of each
// parameter server on this host, rank being its own (all of mode ps, launcher/status/server_metrics):
//
//   fleetrun_ps_rows{rank,table}                            fleetrun_ps_calls_total{rank,call}
//   fleetrun_ps_keys_total{rank,table,direction}            fleetrun_ps_call_errors_total{rank,call}
//     direction: pulled, pushed                             fleetrun_ps_calls_in_flight{rank,call}
//   fleetrun_ps_bytes_total{rank,call,direction}            fleetrun_ps_call_seconds{rank,call}   a histogram
//     direction: in, out                                    fleetrun_ps_staleness_mean{rank}
//                                                           fleetrun_ps_staleness_highest{rank}
//
// Staleness: pushes of other trainers that were applied between a thread's pull and its push.
#pragma once

#include <string>

#include "launcher/status/job_status.h"

namespace fleetrun::launcher {

std::string to_prometheus(const JobStatus& status);

}  // namespace fleetrun::launcher
