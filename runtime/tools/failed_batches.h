// What trainers could not train on, in the report of a job, run again.
#pragma once

#include <string>

namespace fleetrun::inference {

/// Prints what each batch is, what was said of it then, and whether the same is said now. Returns 0 where it
/// is, of all of them, else 1. Throws: Error(data) for a file that is no report, or whose batches cannot be
/// read.
int run_failed_batches(const std::string& report);

}  // namespace fleetrun::inference
