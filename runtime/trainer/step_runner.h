// One step of a distributed program on fed tensors (Executor.run in Python): pull what the step needs, run,
// push the gradients. dataset_trainer does the same over a dataset with prefetching; both are built on
// parameter_exchange.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ps/client/step_client.h"
#include "runtime/base/timeline.h"
#include "runtime/engine/executor.h"
#include "runtime/trainer/table_plan.h"

namespace fleetrun::runtime {

/// Threads: one call at a time.
class StepRunner {
 public:
  /// `client` may be null when the plan has no tables. All arguments are borrowed for the runner's life.
  /// `track` draws stages and operators.
  StepRunner(const engine::Program& program, engine::Scope& scope, const TablePlan& plan,
             ps::StepClient* client, ps::Mode mode, Track track = {});
  ~StepRunner();
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  /// Pulls, runs, and pushes when the program has the plan's gradients (a test clone has not). But in async
  /// mode the first call begins an epoch with one thread; end_epoch leaves it, in every mode.
  void run(const std::map<std::string, const engine::Tensor*>& feed);
  /// From now on run() stops at the first operator that makes NaN or an infinity.
  /// Throws: Error(data) naming it.
  void expect_finite();
  const engine::Tensor& tensor(const std::string& name) const;
  void end_epoch();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::runtime
