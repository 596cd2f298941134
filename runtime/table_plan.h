// From a program with its gradients to the tables of a parameter server: which parameter becomes which table.
// A pure function; servers and trainers run it on the same program and must get the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ps/table_config.h"
#include "runtime/engine/optimizer.h"
#include "runtime/engine/program.h"

namespace fleetrun::runtime {

struct TablePlan {
  struct Entry {
    std::string parameter;
    std::string gradient;
    ps::TableConfig table;

    bool operator==(const Entry&) const = default;
  };
  /// In parameter order; table ids count from 0.
  std::vector<Entry> entries;

  std::vector<ps::TableConfig> tables() const;
  bool operator==(const TablePlan&) const = default;
};

/// Which parameters go to servers. one_process: only those of sparse_embedding (their tables live in this
/// process); server: all of them, and an `embedding` with is_sparse becomes a sparse table.
enum class Placement { one_process, server };

/// Appends the backward operators to `main` and plans the tables; with Placement::one_process the update
/// operators of the other parameters too. Initial values of sparse tables are taken from the startup
/// program's operator for the parameter (which is removed where the parameter no longer lives in the
/// trainer), optimizer and rule from `config`. Throws: Error(config) for an initializer or optimizer that a
/// table cannot honour, naming it.
TablePlan distribute(engine::Program& main, engine::Program& startup, const std::string& loss,
                     const engine::OptimizerConfig& config, Placement placement);

}  // namespace fleetrun::runtime
