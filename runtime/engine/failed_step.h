// A step of a program that failed, as bytes (runtime/base/failed_batch), and run again.
//
// It is the program before passes, the operator that failed, what it was fed, the kept variables that it
// reads, and the rows that it looked up: with these it fails again as it did. What is kept is what the step
// does when it is run once more, on copies, right after it failed; its random numbers are those of then.
//
// The bytes may be a stranger's. The program is built anew, as a script would build it, and the operators of
// its backward pass have to be those that append_backward makes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/engine/executor.h"
#include "runtime/engine/program.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::engine {

struct LookedUp {
  std::string parameter;
  std::vector<std::uint64_t> keys;
  Tensor rows;
};

struct FailedStep {
  /// Without the lines of the script.
  Program program;
  /// The operator; none: what was fed or kept was refused.
  std::optional<std::uint64_t> failed;
  /// Which run it was, where the failure is a value that is not finite.
  std::string not_finite_in;
  std::map<std::string, Tensor> fed, kept;
  std::vector<LookedUp> looked_up;
};

std::string to_bytes(const FailedStep& step);
/// Throws: Error(data) for bytes that are no step.
FailedStep parse_failed_step(std::string_view bytes);

/// What is said of it now; empty: nothing fails. Throws: Error(data) for a program that cannot be run again.
std::string run_again(const FailedStep& step);

/// Keeps the steps of an executor that fail, where the process has a file for them. Threads: as the executor.
class StepKeeper {
 public:
  /// Borrows all. `program`: the executor's before passes; rows: its source, or null.
  StepKeeper(const Program& program, RowSource* rows, const Executor& executor);

  /// From now on values that are not finite are failures. What a step both reads and writes is copied before
  /// each step, so that an update that made one can be kept, too.
  void expect_finite();

  /// Does `run`, a run of the executor with `feed`. `which()`: as expect_finite() is told.
  template <class Which, class Run>
  void watch(const std::map<std::string, const Tensor*>& feed, const Which& which, const Run& run) {
    begin();
    try {
      run();
    } catch (const Error& error) {
      keep(error, feed, looks_for_nan_ ? which() : std::string());
      throw;
    }
  }

 private:
  void begin();
  void keep(const Error& error, const std::map<std::string, const Tensor*>& feed,
            const std::string& not_finite_in) const noexcept;

  const Program& program_;
  RowSource* rows_;
  const Executor& executor_;
  const bool keeps_;
  bool looks_for_nan_ = false;
  std::set<std::string> written_;
  std::map<std::string, Tensor> before_;
};

}  // namespace fleetrun::engine
