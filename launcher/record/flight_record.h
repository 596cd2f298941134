// The record of a job on one host: LOG_DIR/POD/record, with which the job can be gone through again.
//
//   record := frame …    frame := u32 length | entry    (runtime/base/codec; launcher/record/fields.h)
//
// The first entry opens the record, the last one ends it, and between them stand the job's events and what
// its reducer was told, in the order in which they happened. Secrets are taken out before anything is written
// (launcher/record/redactor), environments keep what fleetrun itself says of a job, and the lists of all
// endpoints are left out. A record without an end is one of a job that runs, or whose fleetrun was killed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/failure/verdict.h"
#include "launcher/model/job_event.h"
#include "launcher/model/job_record.h"
#include "launcher/model/plan.h"
#include "launcher/model/world.h"
#include "launcher/record/redactor.h"
#include "launcher/status/event_json.h"

namespace fleetrun::launcher {

/// Grows when entries change; a record of another number is refused by name.
constexpr std::uint32_t kRecordFormat = 2;

constexpr const char* kRecordName = "record";

struct RecordOpening {
  std::uint32_t format = kRecordFormat;
  std::string version;  // of fleetrun
  EventTime began;
  pid_t fleetrun_pid = -1;
  std::uint64_t seed = 0;            // of the backoff's jitter
  std::optional<int> first_attempt;  // of a job on several hosts
  bool torchrun = false;             // its screen is torchrun's, which reads files
  std::vector<std::string> command;  // fleetrun's arguments
  Plan plan;
};

struct Told {
  EventTime time;
  JobEvent event;
};

/// What the reducer was told, and the actions that it answered with, each in words.
struct Decision {
  Event event;
  std::vector<std::string> actions;
};

struct PlanMade {
  Plan plan;
};

/// fleetrun itself could not go on: an Error.
struct Refusal {
  ErrorKind kind = ErrorKind::host;
  std::string what = {}, hint = {};
};

struct RecordEnd {
  Moment ended;
  std::optional<JobEnd> end;  // as the hosts of the job know it
  std::optional<Refusal> refusal;
  std::string verdict, screen;                            // as they were written and shown
  std::string last_lines;                                 // of the process that failed first
  std::vector<std::pair<std::string, std::string>> logs;  // the ends of all, by process
};

using RecordEntry = std::variant<RecordOpening, Told, Decision, SignalSent, LeftAlive, PlanMade, RecordEnd>;

struct FlightRecord {
  RecordOpening opening;
  std::vector<RecordEntry> entries;  // without the opening and the end
  std::optional<RecordEnd> end;
};

std::vector<std::string> words_of(const std::vector<Action>& actions);

/// The part of a plan that is recorded: environments by an allow-list, no lists of endpoints.
Plan recorded_plan(const Plan& plan);

/// An entry as a frame, cleaned by `redactor`.
std::string to_frame(const RecordEntry& entry, const Redactor& redactor);

/// A frame that was cut off at the end is left out.
/// Throws: Error(data) for bytes that are no record, and for a record of another format.
FlightRecord parse_record(std::string_view bytes);

}  // namespace fleetrun::launcher
