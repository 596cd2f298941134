// verdict.json: how a job ended, for programs. LOG_DIR/POD/verdict.json, and LOG_DIR/verdict.json as another
// name of the newest one.
//
//   {
//     "schema": 1,
//     "fleetrun": "0.3.0",
//     "job": "default", "pod": "abcdef",
//     "outcome": "failed",            completed, failed, stopped, timed_out, refused
//     "exit_status": 1,
//     "exit_status_of": "process",    the first failing process's own; or "fleetrun":
//                                     125, 124, 126, 127, 128 + signal
//     "cause": "trainer 5 exited with 1: ValueError: x",     null when all went well
//     "ended": "2024-05-01T12:00:00.123Z", "seconds": 12.3,  from the start of the first process
//     "containment": "cgroup2",
//     "restarts": 1,
//     "first_failure": {              null when no process failed
//       "name": "trainer 5", "role": "trainer", "rank": 5, "pid": 4711, "attempt": 0,
//       "kind": "crash",              crash, oom, preemption, hang, not_started
//       "text": "exited with 1: ValueError: x", "signature": "python ValueError: x @ train.py:step",
//       "detail": "most memory that it had: 60.0 MiB\n", "hint": "", "block": "Traceback …\n",
//       "log": "log/workerlog.5", "time": "2024-05-01T12:00:00.100Z", "seconds": 12.2},
//     "cascade": [{"text": "exited with 1", "asked": false, "processes": ["trainer 0"], "first_ms": 5.1,
//                  "last_ms": 480.2}],
//     "attempts": [{"attempt": 0, "name": "trainer 3", "kind": "crash", "text": "exited with 1",
//                   "signature": "exit 1",
//                   "restarted": true, "decision": "crash, restart 1 of 3"}]
//   }
//
// A reader ignores fields that it does not know; a field that changes its meaning raises "schema". "asked"
// are those that fleetrun had told to stop. Bytes that are not UTF-8 become U+FFFD.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "launcher/failure/report.h"

namespace fleetrun::launcher {

constexpr int kVerdictSchema = 1;

/// Two clocks at the same moment: what turns CLOCK_MONOTONIC into the time of day.
struct Moment {
  std::int64_t monotonic_ns = 0, wall_ns = 0;
};

Moment this_moment();

/// The text of verdict.json. Pure.
std::string to_json(const Report& report, const Plan& plan, const JobHistory& history, Moment ended);

/// Writes `text` as LOG_DIR/POD/verdict.json, mode 0600, and gives it its second name; both appear whole or
/// not at all. Where that fails `warn` is told once, and the job goes on. Never throws.
void write_verdict(const std::string& text, const Plan& plan,
                   const std::function<void(const std::string&)>& warn) noexcept;

}  // namespace fleetrun::launcher
