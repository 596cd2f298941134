// train_from_dataset and infer_from_dataset: one trainer thread per reader thread, each with its own
// executor, rows pulled by key and gradients pushed, the next batch parsed (and, in async mode, pulled) while
// this one computes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dataset/base/batch_source.h"
#include "ps/client/step_client.h"
#include "runtime/base/timeline.h"
#include "runtime/engine/executor.h"
#include "runtime/trainer/epoch_profile.h"
#include "runtime/trainer/event_file.h"
#include "runtime/trainer/table_plan.h"

namespace fleetrun::runtime {

struct EpochOptions {
  /// Variables to print, each with the text to print it under.
  std::vector<std::string> fetch = {};
  std::vector<std::string> fetch_info = {};
  /// Batches of thread 0 between two printed lines; 0 prints nothing.
  std::int64_t print_period = 100;
  /// false: forward only, nothing is pushed and no dense parameter changes (infer_from_dataset).
  bool train = true;
  ps::Mode mode = ps::Mode::async;
  /// Tells epochs over the same data apart that are not the same; 0 where their order does.
  std::uint64_t part = 0;
  /// async and half_async: pushes of a thread between two pulls of the dense parameters.
  std::uint32_t pull_dense_every = 1;
  /// Passes over the program that are left out (engine/passes/passes.h).
  std::set<std::string> passes_off = {};
  /// Measures every operator (EpochResult::operators).
  bool time_operators = false;
  /// Where the epoch draws what it does; closed at its end.
  std::shared_ptr<Timeline> timeline = nullptr;
  /// Gets what is fetched, every print_period batches and at the end.
  std::shared_ptr<EventFile> events = nullptr;
  /// Stops at the first operator that makes NaN or an infinity. No pass changes the program then.
  bool check_nan = false;
  /// Gets each line as it is made: "time: [2022-05-18 11:27:27], batch: [1], loss[1]:[0.666739]".
  std::function<void(const std::string&)> print = {};
  /// Called after every batch of so many examples by the thread that computed it; has to be cheap and must
  /// not throw.
  std::function<void(std::size_t)> on_batch = {};
  /// Gets what `events` gets; must not throw.
  std::function<void(const TrainingEvent&)> on_event = {};
};

/// What an epoch did; losses of all threads are weighted by their examples. Of a trainer that was started
/// again in sync mode (ps::StepClient::skip_steps): in this process.
struct EpochResult {
  std::uint64_t examples = 0;
  std::uint64_t batches = 0;
  /// Batches that the process before had done, and whether those are all there are: then nothing was read.
  std::uint64_t skipped = 0;
  bool skipped_whole = false;
  double seconds = 0;
  /// Of all threads, without the wait of a whole epoch at its end.
  StageSeconds stages{};
  OperatorTimes operators;
  /// Of this trainer's pushes, as the servers have counted them; none in sync mode.
  ps::StalenessCounts staleness;
  /// Mean over all examples of each fetched variable that has one value per batch, in the order of `fetch`.
  std::vector<double> fetch_means;
};

/// Runs `program` once over `dataset`. `client` may be null when the plan has no tables.
/// The data variables of the program that are in the dataset's slots are fed by name.
/// Throws: Error(data) from the readers, Error(network) from the servers, Error(config) when a data variable
/// has no slot; Error(data) for a NaN with check_nan; Error(data) too when there are fewer batches than were
/// done before a restart; all threads have ended by then, and the pipe commands too.
EpochResult run_epoch(const engine::Program& program, engine::Scope& scope, dataset::BatchSource& dataset,
                      const TablePlan& plan, ps::StepClient* client, const EpochOptions& options);

}  // namespace fleetrun::runtime
