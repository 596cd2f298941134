// train_from_dataset of a program that is trained collectively: each rank reads its own files with its own
// threads, and the gradients of one batch of each thread of each rank are averaged in a step.
//
// A thread, or a rank, that has no batch left takes part with none: a step's gradients are the means over the
// batches there are, each counting alike, and the epoch ends when nobody has one. So no example is left out
// and none is seen twice, and ranks need not have equally many. Threads read the same files in every run,
// sums are made in the order of threads and ranks: a run gives the same bits again,
// and all ranks end with the same parameters.
//
// With local SGD a step averages over this rank's threads; ranks average parameters when an average is due,
// those that have trained since the last one counting alike.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "collective/base/communicator.h"
#include "dataset/base/batch_source.h"
#include "runtime/engine/executor.h"
#include "runtime/trainer/collective_options.h"
#include "runtime/trainer/dataset_trainer.h"

namespace fleetrun::runtime {

/// Threads: one call at a time.
class CollectiveEpoch {
 public:
  /// All arguments are borrowed; communicators: at least one.
  /// Throws: Error(config) as RankMean and LocalSteps do.
  CollectiveEpoch(const engine::Program& program, engine::Scope& scope,
                  std::vector<collective::Communicator*> communicators, const CollectiveOptions& options);
  ~CollectiveEpoch();
  CollectiveEpoch(const CollectiveEpoch&) = delete;
  CollectiveEpoch& operator=(const CollectiveEpoch&) = delete;

  /// Trains on every batch of `dataset` once. What compression keeps back stays from epoch to epoch while the
  /// dataset has as many readers and nothing else is fetched; local SGD goes on where it was. options.train
  /// is true; mode and pull_dense_every have no effect. Stages are read, compute and exchange.
  /// Throws: Error(data) from the readers, Error(config) when a data variable has no slot, and what
  /// communicators throw; Error(data) for a NaN with check_nan, which ends the epoch of all ranks.
  EpochResult run(dataset::BatchSource& dataset, const EpochOptions& options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::runtime
