// Averages a program's gradients over the ranks of a job, between its backward and its update operators.
//
//   run     a bucket (runtime/rank_mean.h) starts as soon as the operator has run that finishes its last gradient, beside the
//           operators that follow
//   update  before the first update operator all of them have ended
//
// All ranks run the same program. What they feed may differ, also in size: every rank's gradients count alike.
#pragma once

#include <memory>
#include <vector>

#include "collective/communicator.h"
#include "runtime/engine/executor.h"
#include "runtime/rank_mean.h"

namespace fleetrun::runtime {

/// Threads: one call at a time.
class GradientExchange {
 public:
  /// `executor` runs `program` over `scope`; buckets take the communicators, at least one, in turn; all are borrowed.
  /// Throws: Error(config) as check_collective() and momentums_of() do.
  GradientExchange(const engine::Program& program, engine::Scope& scope, engine::Executor& executor,
                   std::vector<collective::Communicator*> communicators, const RankMeanOptions& options);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  /// One step: the executor's run with the exchange in it. Throws: as both.
  void run(const std::map<std::string, const engine::Tensor*>& feed);
  /// The number of buckets, for tests.
  std::size_t buckets() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::runtime
