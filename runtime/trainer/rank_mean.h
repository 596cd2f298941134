// Means of gradients over the ranks of a job.
//
//   dense        joined to buckets (collective/base/bucket_plan.h),
//                each an all-reduce that runs beside what comes next
//   rows         those of all ranks behind each other
//   half         dense gradients travel as float16
//   compression  of a large dense gradient only the largest values travel (deep gradient compression):
//                  u = momentum * u + gradient, v = v + u, the largest |v| are sent, and there u = v = 0
//                Before begin_step all of it is sent; from then on the share that is kept back goes through
//                `sparsity` in
//                ramp_steps steps, and its last value stays. The optimizer's own momentum is then zeroed for
//                it.
// Source: documents 001 and 004; Lin et al., Deep Gradient Compression, 2018,
// with Paddle's defaults and thresholds.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/base/bucket_plan.h"
#include "collective/base/communicator.h"
#include "runtime/engine/replicas/replicas.h"

namespace fleetrun::runtime {

struct CompressionRule {
  std::size_t begin_step = 0;
  std::size_t ramp_steps = 1;
  std::vector<double> sparsity = {0.999};
  /// Gradients with fewer values are sent whole.
  std::size_t min_values = 16384;

  /// The share of values that is kept back in a step, counted from 0.
  double sparsity_in(std::size_t step) const noexcept;
};

struct RankMeanOptions {
  collective::BucketRule rule;
  bool half = false;
  std::optional<CompressionRule> compression = std::nullopt;
};

/// The momentum of a parameter's optimizer, and its velocity (null without momentum).
struct Momentum {
  double factor = 0.0;
  engine::Tensor* velocity = nullptr;
};

/// What a program's update operators apply, by parameter.
/// Throws: Error(config) for one that is neither sgd nor momentum.
std::map<std::string, Momentum> momentums_of(const engine::Program& program, engine::Scope& scope);

/// Throws: Error(config) for a program that cannot be trained collectively: with sparse_embedding, whose rows
/// would lie in each rank apart.
void check_collective(const engine::Program& program);

/// The buckets of dense gradients that a RankMean of these gradients makes, each as indexes of `gradients`,
/// in the order in which backward finishes them. The others are in none.
std::vector<std::vector<std::size_t>> buckets_of(std::span<const engine::StepGradient> gradients,
                                                 const RankMeanOptions& options);

/// All ranks make the same calls. Threads: one call at a time.
class RankMean {
 public:
  /// Buckets take the communicators, at least one, in turn; all are borrowed, as the gradients' tensors are.
  /// `momentums` is needed for compression.
  RankMean(std::span<const engine::StepGradient> gradients,
           std::vector<collective::Communicator*> communicators, const RankMeanOptions& options,
           const std::map<std::string, Momentum>& momentums = {});
  ~RankMean();
  RankMean(const RankMean&) = delete;
  RankMean& operator=(const RankMean&) = delete;

  /// Sends a bucket on its way. Throws: what its communicator throws, as the calls below do.
  void start(std::size_t bucket);
  /// Waits for a bucket that was started: its gradients are then the means over the ranks.
  void finish(std::size_t bucket);
  /// Makes the means of the gradients in no bucket.
  void finish_rest();
  /// Instead of those three, where each rank's gradients are sums over `batches`, at most `max` of them: the
  /// means over all batches; false when no rank had any. A compressed gradient is the mean over the ranks, of
  /// each rank's mean.
  bool finish_sums(std::size_t batches, std::size_t max);
  std::size_t buckets() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::runtime
