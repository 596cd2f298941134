// What a trainer has fetched while it trains, as a file of events (FLEETRUN_EVENTS): one line of JSON every
// print_period batches and at the end of an epoch, for `fleetrun plot` and for programs.
//
//   {"time": 1763791111.123, "batch": 200, "batches": 100, "examples": 100000,
//    "values": {"loss": 0.53, "auc": 0.66}}
//
// examples, values: of the last `batches` batches of the first thread, and means over these examples; batch:
// how many that thread has trained in this epoch. A value that is NaN is null; a fetched variable
// with several values is left out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace fleetrun::runtime {

struct TrainingEvent {
  std::uint64_t batch = 0;
  std::uint64_t batches = 0;
  std::uint64_t examples = 0;
  std::vector<std::pair<std::string, double>> values;
};

/// The line of an event at this time, in seconds since 1970.
std::string event_line(const TrainingEvent& event, double time);

/// Threads: one at a time.
class EventFile {
 public:
  /// Appends to FOLDER/trainer-RANK.jsonl; the folder is made where it is not there.
  /// Throws: Error(host) when it cannot.
  EventFile(const std::string& folder, std::int64_t rank);

  /// The event, now. Throws: Error(host) when it cannot be written.
  void add(const TrainingEvent& event) const;

 private:
  std::string path_;
  UniqueFd file_;
};

}  // namespace fleetrun::runtime
