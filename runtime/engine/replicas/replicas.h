// Several replicas of a program in one process: each computes a batch of its own on a thread, with
// temporaries of its own; parameters are shared, and updated once in a step with all replicas' gradients.
//
//   compute   forward and backward of each replica
//   sum       gradients are added up in the order of the replicas, whatever threads do:
//             a run gives the same bits again
//   exchange  where the caller has one: other processes' gradients (runtime/trainer/rank_mean.h)
//   update    each parameter by one thread, that of the replica that owns it
//
// What operators keep from step to step besides parameters (counters of auc, running means) is shared too:
// the replicas run these operators one after the other, in their order,
// as if their batches came one after the other.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/executor.h"
#include "runtime/engine/program.h"
#include "runtime/engine/step_gradients.h"

namespace fleetrun::engine {

/// Who adds a gradient up: all threads a part of each, or the thread of the replica that owns the parameter.
/// The sums have the same bits.
enum class ReduceStrategy { all_reduce, reduce };

/// What the loss of a replica counts in the gradients: one over the number of replicas that have a batch,
/// one, or what is fed as the loss's gradient (LOSS@GRAD).
enum class GradientScale { mean, one, customized };

struct ReplicaOptions {
  std::size_t replicas = 1;
  /// Threads that run them, the caller's included; 0: one for each.
  std::size_t threads = 0;
  ReduceStrategy reduce = ReduceStrategy::all_reduce;
  GradientScale scale = GradientScale::mean;
  /// What tensor() can read after a step; passes (passes/passes.h) make the rest cheaper.
  /// Without it everything is there.
  std::optional<std::set<std::string>> kept = std::nullopt;
  std::set<std::string> passes_off = {};
};

/// Is told what replicas do, by the thread that does it.
struct ReplicaObserver {
  /// An operator of a replica has run; also one that updates what the replica owns,
  /// with an executor of updates.
  std::function<void(std::size_t replica, const Executor&, const Operator&, double seconds)> ran;
  /// A replica that has a batch has run all but the updates.
  std::function<void(std::size_t replica)> computed;
};

/// By gradient: the replica that owns it, each going to the one that has the fewest values so far, the first
/// among equals. Source: Paddle's ReduceStrategy.Reduce.
std::vector<std::size_t> owners_of(std::span<const std::size_t> sizes, std::size_t replicas);

/// Threads: one call at a time.
class Replicas {
 public:
  using Feed = std::map<std::string, const Tensor*>;
  /// The feed of a replica, asked for on its thread; null when it has no batch in this step.
  using FeedSource = std::function<const Feed*(std::size_t replica)>;
  /// Called once in a step, when gradients() are the sums over `batches` replicas; makes means of them.
  /// false: nothing is to be updated.
  using Exchange = std::function<bool(std::size_t batches)>;

  /// A program without update operators is run and nothing more. `rows`: none, or as for Executor one for
  /// each replica. Throws: Error(config) for 0 replicas,
  /// and for an operator after the updates that reads what they change.
  Replicas(const Program& program, Scope& scope, const ReplicaOptions& options,
           std::span<RowSource* const> rows = {});
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  std::size_t size() const noexcept;
  /// One step. Returns the number of replicas that had a batch; with none nothing is updated, unless
  /// `exchange` says so. Throws: what the feed source, the first replica
  /// that fails or the exchange throws; then nothing is updated.
  std::size_t run(const FeedSource& feeds, const Exchange& exchange = {},
                  const ReplicaObserver& observer = {});
  /// A variable of a replica after run(). Throws: Error(config) when there is none.
  const Tensor& tensor(std::size_t replica, const std::string& name) const;
  /// What update operators read, in the order in which backward finishes it.
  std::span<const StepGradient> gradients() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::engine
