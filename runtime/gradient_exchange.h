// Averages a program's gradients over the ranks of a job, between its backward and its update operators.
//
//   plan    dense gradients in the order in which operators finish them, joined to buckets (collective/bucket_plan.h)
//   run     a bucket starts as soon as the operator has run that finishes its last gradient, beside the operators that follow
//   update  before the first update operator all buckets have ended, and rows of sparse gradients are gathered
//
// All ranks run the same program. What they feed may differ, also in size: every rank's gradients count alike.
#pragma once

#include <memory>
#include <vector>

#include "collective/bucket_plan.h"
#include "collective/communicator.h"
#include "runtime/engine/executor.h"

namespace fleetrun::runtime {

/// Threads: one call at a time.
class GradientExchange {
 public:
  /// Buckets take the communicators, at least one, in turn; all are borrowed.
  /// Throws: Error(config) for a program with sparse_embedding, whose rows would lie in each rank apart.
  GradientExchange(const engine::Program& program, engine::Executor& executor,
                   std::vector<collective::Communicator*> communicators, const collective::BucketRule& rule);
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
