// A step of a program on CPU_NUM replicas (Paddle's ParallelExecutor): what is fed is split along the batch,
// what is fetched is put together again. Rows and parameters of tables are exchanged for all replicas
// together (runtime/trainer/replica_tables.h).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collective/base/communicator.h"
#include "ps/client/step_client.h"
#include "runtime/engine/executor.h"
#include "runtime/engine/replicas/replicas.h"
#include "runtime/trainer/collective_options.h"
#include "runtime/trainer/table_plan.h"

namespace fleetrun::runtime {

/// Examples begin, begin + 1, … below end of `tensor`: of a sequence tensor with their values, else rows.
engine::Tensor examples_of(const engine::Tensor& tensor, std::size_t begin, std::size_t end);
/// The number of examples of a tensor that has axes.
std::size_t example_count(const engine::Tensor& tensor);

/// Threads: one call at a time.
class ReplicaRunner {
 public:
  using Feed = engine::Replicas::Feed;

  /// `communicators`: empty, or those of the ranks that this one averages its gradients, or with local SGD
  /// its parameters, with. All are borrowed.
  /// Throws: Error(config) as Replicas, RankMean and LocalSteps do; for scales other than `mean` where
  /// gradients of ranks are averaged.
  ReplicaRunner(const engine::Program& program, engine::Scope& scope, const engine::ReplicaOptions& replicas,
                std::vector<collective::Communicator*> communicators = {},
                const CollectiveOptions& options = {});
  /// Of a program with tables. The plan and the client are borrowed too.
  ReplicaRunner(const engine::Program& program, engine::Scope& scope, const engine::ReplicaOptions& replicas,
                const TablePlan& plan, ps::StepClient& client, ps::Mode mode);
  ~ReplicaRunner();
  ReplicaRunner(const ReplicaRunner&) = delete;
  ReplicaRunner& operator=(const ReplicaRunner&) = delete;

  /// Each variable is shared out by itself, as evenly as can be, the first replicas getting one example more.
  /// With fewer examples than replicas the first replicas get one each. What has no axes goes to all.
  void run(const Feed& feed);
  /// A feed for each replica, or without gradients for the first ones.
  /// Throws: Error(config) for another number of them.
  void run(std::span<const Feed> feeds);
  /// With local SGD the average now; all ranks call it. Nothing without.
  void synchronize();
  /// Steps since the last average of local SGD; 0 without.
  std::size_t since_average() const noexcept;
  /// With tables: leaves the epoch that steps are part of (runtime/trainer/replica_tables.h).
  void end_epoch();
  std::size_t size() const noexcept;
  /// Replicas that took part in the last step; the first of them.
  std::size_t active() const noexcept;
  const engine::Tensor& tensor(std::size_t replica, const std::string& name) const;
  /// The values of all active replicas behind each other along the first axis.
  /// Throws: Error(config) where they differ in another axis.
  engine::Tensor merged(const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::runtime
