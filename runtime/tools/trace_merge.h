// Joins the timelines of a job's processes (runtime/base/timeline.h) into one file,
// and adds up what they say.
//
// Each file says when it began, by the clock of its host, so spans of different processes lie beside each
// other as they happened; on several hosts as well as their clocks agree.
// A file that its process did not end is taken as far as it goes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fleetrun::trace {

struct Total {
  std::uint64_t spans = 0;
  double microseconds = 0;
};
/// By the name of the spans.
using Totals = std::map<std::string, Total>;

struct ProcessSummary {
  std::string name;  // "trainer 0"
  std::size_t files = 0;
  /// Files that were not ended.
  std::size_t cut_off = 0;
  /// By category: stage, operator, reader, exchange, request, wait.
  std::map<std::string, Totals> totals;
};

struct Summary {
  /// Trainers by rank, then servers.
  std::vector<ProcessSummary> processes;
  std::uint64_t spans = 0;
  /// From the first span's beginning to the last one's end.
  double seconds = 0;
};

/// The timelines in a folder; other files are passed over.
/// Throws: Error(usage) for a folder that is not there; Error(data) for one without timelines.
std::vector<std::string> find_timelines(const std::string& folder);

/// Writes one timeline, from 0 on, with a process for each rank. `out` is replaced when all is there.
/// Throws: Error(data) for a file that is not a timeline; Error(host) for what cannot be read or written.
Summary merge(const std::vector<std::string>& files, const std::string& out);

/// What took the time, for people: by process and stage, then the operators that took the most.
std::string summary_text(const Summary& summary);

}  // namespace fleetrun::trace
