// Events of a job as lines of JSON: LOG_DIR/POD/events.jsonl, and what `fleetrun attach` is sent.
//
// Every line is one object that begins with
//   schema   1; grows when a field changes its meaning. A reader ignores types
//            and fields that it does not know
//   time     when it happened, by the wall clock: "2026-11-21T08:24:04.123456Z"
//   at       the same by CLOCK_MONOTONIC, in nanoseconds: for differences,
//            and for the order across files of one host
//   type     one of these, with the fields after it:
//
//   job_began            job_id pod mode fleetrun_pid version log_dir processes (how many); the first line
//   contained            level cgroup init_pid why_not_more
//   attempt_began        attempt
//   process_started      PROCESS attempt pid
//   process_exited       PROCESS attempt pid status (as a shell shows it) asked, and code, or signal and core
//   process_not_started  PROCESS attempt stage errno error
//   all_running          -
//   role_ready           role
//   stop_began           why waiting_for (names)
//   grace_elapsed        still_alive (names)
//   failure_explained    PROCESS attempt kind cause detail signature hint
//   restart_decided      PROCESS scope next_attempt backoff_ms why
//   gave_up              why
//   signal_received      signal again
//   signal_forwarded     signal
//   hang_found           culprits (names) silent (names) why report
//   injected             what
//   unkillable           pid why
//   logs_truncated       PROCESS bytes errno error        (errno 0: old parts are removed
//                                                         to keep to --log_cap)
//   warning              text
//   events_lost          count: lines that could not be written before this one
//   job_ended            exit_status; the last line
//
// PROCESS stands for process ("trainer 1"), role ("trainer"), rank (1). Pure.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/model/job_event.h"
#include "launcher/model/plan.h"

namespace fleetrun::launcher {

constexpr int kEventSchema = 1;

/// Now, by both clocks; an event that carries its own time is moved to it.
struct EventTime {
  std::int64_t wall_ns = 0;  // since 1970
  std::int64_t monotonic_ns = 0;
};

EventTime event_time_now() noexcept;

/// The line of `event`, with its newline. Bytes that are not UTF-8 become U+FFFD.
std::string to_json_line(const JobEvent& event, const Plan& plan, EventTime now);

/// The first line.
std::string job_began_line(const Plan& plan, pid_t fleetrun_pid, EventTime now);

/// The line for `count` events that could not be written.
std::string events_lost_line(std::size_t count, EventTime now);

/// "2026-11-21T08:24:04.123456Z"
std::string iso_time(std::int64_t wall_ns);

}  // namespace fleetrun::launcher
