// A job's status as a table for people: `fleetrun status` prints it once,
// `fleetrun top` again and again. Pure.
#pragma once

#include <string>

#include "launcher/status/job_status.h"

namespace fleetrun::cli {

struct TableSize {
  int columns = 80;
  int rows = 0;  // 0: as many as needed; otherwise processes that do not fit are counted
};

/// A heading line or two, then a line per process: name, pid, state, attempt, CPU, memory, time, last line.
/// CPU is the share since `before` (100 % is one core), or since the start where there is none. Then a line
/// per parameter server of this host: rows, calls and keys a second, the time that 99 in 100 calls were not
/// above, calls under way; likewise since `before`. Restarts come last.
std::string status_table(const launcher::JobStatus& status, const launcher::JobStatus* before,
                         TableSize size);

/// "1.2G", "512M", "4.0K"
std::string short_bytes(double bytes);

/// "59s", "2m05s", "3h12m", "2d03h"
std::string short_time(double seconds);

/// The beginning of `text` in at most `columns` columns: whole characters, each taken for one column.
std::string cut_to_columns(std::string_view text, int columns);

}  // namespace fleetrun::cli
