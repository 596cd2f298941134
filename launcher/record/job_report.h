// The report of a job: one file of JSON with all that is known of it, for people and for `fleetrun replay`.
//
//   {
//     "schema": 1, "fleetrun": "0.3.0", "made": "2024-05-01T12:00:00.123456Z",
//     "job": "default", "pod": "abcdef", "over": true,     false: it ran when the report was made
//     "command": ["--trainer_num=2", "train.py"],
//     "machine": {"kernel": "Linux 6.1.0", "libc": "glibc 2.36", "cpus": 8, "memory_mib": 32000,
//                 "python": "/usr/bin/python3", "packages": {"numpy": "1.26.4"}},
//     "plan": {…},                 as --dry-run=json has it
//     "events": [{…}],             as events.jsonl has them
//     "verdict": {…},              as verdict.json has it; null while the job runs
//     "screen": "first failure: …",
//     "logs": {"trainer 0": "the end of its log"},
//     "stacks": "trainer 0 …",     of a job that runs; those of a hang are in its event
//     "batches": {"trainer 0": "…"},  what it could not train on (runtime/base/failed_batch), in base64
//     "record": "AAAB…"            launcher/record/flight_record, in base64
//   }
//
// Everything but "machine", "batches" and a running job's "logs" and "stacks" comes out of the record, from
// which secrets are gone.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "launcher/logs/log_files.h"
#include "launcher/record/flight_record.h"

namespace fleetrun::launcher {

constexpr int kReportSchema = 1;

struct Machine {
  std::string kernel, libc, python;  // python: of the job's processes; empty: they are of another kind
  int cpus = 0;
  std::int64_t memory_mib = 0;
  std::map<std::string, std::string> packages;  // of that Python, with their versions
};

/// `python`: an interpreter, which is asked for its packages; empty: none.
Machine this_machine(const std::string& python, const Environ& environment);

/// The interpreter of the job's processes; empty: they are of another kind.
std::string python_of(const Plan& plan);

/// The ends of a job's logs, by process, of a mebibyte in all.
std::vector<std::pair<std::string, std::string>> ends_of_logs(const Plan& plan,
                                                              std::span<const LogFile> logs);

/// What trainers could not train on, by process: those that are in the pod's directory, as many as 64 MiB
/// hold.
std::map<std::string, std::string> failed_batches(const std::string& pod_directory);

/// What is in no record: of a job that runs, and batches.
struct Beside {
  std::vector<std::pair<std::string, std::string>> logs;  // their ends, by process
  std::string stacks;
  std::map<std::string, std::string> batches;
};

/// `record`: its bytes.
std::string to_report(std::string_view record, const Machine& machine, const Beside& beside);

/// Whether a text, which record_in() takes, has any.
bool has_batches(const std::string& report);

/// The record in a report. Throws: Error(data) for a text that is no report.
std::string record_in(const std::string& report);

}  // namespace fleetrun::launcher
