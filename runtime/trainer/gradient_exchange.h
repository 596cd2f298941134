// Runs a program whose gradients are averaged over the ranks of a job, between its backward and its update
// operators, as the schedule says that is written into the program (engine/passes/reduce_schedule.h).
//
//   reduce_start   a bucket (runtime/trainer/rank_mean.h) begins to travel beside the operators that follow
//   reduce_wait    before the first update operator that needs it, it has come
//
// All ranks run the same program. What they feed may differ, also in size:
// every rank's gradients count alike.
#pragma once

#include <memory>
#include <vector>

#include "collective/base/communicator.h"
#include "runtime/engine/executor.h"
#include "runtime/trainer/epoch_profile.h"
#include "runtime/trainer/rank_mean.h"

namespace fleetrun::runtime {

/// Threads: one call at a time.
class GradientExchange {
 public:
  /// Buckets take the communicators, at least one, in turn; they are borrowed, as the scope is.
  /// Throws: Error(config) as check_collective() and momentums_of() do.
  GradientExchange(const engine::Program& program, engine::Scope& scope,
                   std::vector<collective::Communicator*> communicators, const RankMeanOptions& options);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  /// One step: the executor's run with the exchange in it, measured in `profile` where there is one.
  /// Throws: as both.
  void run(const std::map<std::string, const engine::Tensor*>& feed, EpochProfile* profile = nullptr);
  const engine::Executor& executor() const noexcept;
  /// The program as it is run, with the exchange in it.
  const engine::Program& program() const noexcept;
  /// The number of buckets, for tests.
  std::size_t buckets() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::runtime
