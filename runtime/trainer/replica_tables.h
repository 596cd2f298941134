// The tables of a program that several replicas compute: each replica has the rows of its own examples
// pulled, while dense values are pulled, and gradients pushed, once in a step for all of them. To the servers
// the replicas are one thread that trains on the whole batch, in every mode.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "ps/client/step_client.h"
#include "runtime/engine/executor.h"
#include "runtime/engine/replicas/replicas.h"
#include "runtime/trainer/parameter_exchange.h"
#include "runtime/trainer/table_plan.h"

namespace fleetrun::runtime {

/// Threads: one, but pull() by one for each replica at once.
class ReplicaTables {
 public:
  /// All arguments are borrowed. `program` is the one that the replicas are made of.
  ReplicaTables(const engine::Program& program, engine::Scope& scope, const TablePlan& plan,
                ps::StepClient& client, ps::Mode mode, std::size_t replicas);

  /// Whether the program has gradients.
  bool trains() const noexcept { return trains_; }
  /// By replica.
  const std::vector<engine::RowSource*>& rows() const noexcept { return rows_; }
  /// Puts the servers' dense values into the scope. But in async mode the first call begins an epoch with one
  /// thread; end_epoch leaves it, in every mode. Throws: what the client throws.
  void begin_step();
  /// The rows of what a replica is fed. Throws: Error(config) where ids are not fed,
  /// and what the client throws.
  void pull(std::size_t replica, const Feed& feed);
  /// Pushes the gradients of the first `active` replicas as one, dense ones added up and rows behind each
  /// other, all times `factor`; rows whose gradients are those of single examples, not of a mean, times
  /// factor * active. Nothing when the program has no gradients.
  void push(const engine::Replicas& replicas, std::size_t active, float factor);
  void end_epoch();

 private:
  /// A gradient of all replicas together.
  struct Joined {
    std::vector<float> values, shows, clicks;
    std::vector<std::uint64_t> keys;
  };
  void join(const engine::Replicas& replicas, std::size_t active, float factor, const TablePlan::Entry& entry,
            Joined& joined) const;

  const engine::Program& program_;
  engine::Scope& scope_;
  const TablePlan& plan_;
  ps::StepClient& client_;
  ps::Mode mode_;
  bool trains_;
  bool in_epoch_ = false;
  std::deque<ParameterExchange> exchanges_;  // by replica
  std::vector<engine::RowSource*> rows_;
  // By entry of the plan:
  std::vector<Joined> joined_;
  std::vector<bool> by_example_;
};

}  // namespace fleetrun::runtime
