// From a program with its gradients to the tables of a parameter server: which parameter becomes which table.
// A pure function; servers and trainers run it on the same program and must get the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ps/base/table_config.h"
#include "runtime/engine/optimizer.h"
#include "runtime/engine/program.h"
#include "runtime/trainer/table_choice.h"

namespace fleetrun::runtime {

/// Which parameters go to servers. one_process: only those of sparse_embedding (their tables live in this
/// process); server: all of them, and an `embedding` with is_sparse becomes a sparse table.
enum class Placement { one_process, server };

struct TablePlan {
  struct Entry {
    std::string parameter;
    /// Empty when the loss does not depend on the parameter: its rows are read only.
    std::string gradient;
    /// The variable with the keys of a row gradient; empty for a dense table.
    std::string keys;
    /// Variables with a show and a click for each of these keys; empty when each is one show and no click.
    std::string shows = {};
    std::string clicks = {};
    std::uint16_t slot = 0;
    ps::TableConfig table;

    bool operator==(const Entry&) const = default;
  };
  /// In the order of parameter names; table ids count from 0, or on from those of other plans.
  std::vector<Entry> entries;
  /// one_process: pulls never run ahead of pushes, so that training is exactly the optimizer that was
  /// written.
  Placement placement = Placement::one_process;

  std::vector<ps::TableConfig> tables() const;
  /// Numbers the tables beside those of `others`, plans of programs that train over the same servers: a
  /// parameter that another trains, too, is the same table, and one that this plan or the other only reads is
  /// the table of the one that trains it. Throws: Error(config) naming a parameter of two different tables;
  /// the others are not changed then.
  void number_beside(const std::vector<TablePlan*>& others);
  /// Adds the dense tables of `other` that `program`, this plan's, has the parameters of: they are read only.
  void read(const TablePlan& other, const engine::Program& program);
  bool operator==(const TablePlan&) const = default;
};

/// Appends the backward operators to `main` and plans the tables; with Placement::one_process the update
/// operators of the other parameters too. Initial values of sparse tables are taken from the startup
/// program's operator for the parameter (which is removed where the parameter no longer lives in the
/// trainer); their seed is the operator's, else the startup program's random_seed, also when that is 0:
/// servers and trainers agree on it without talking. Rule and rates come from `config`; adam in a sparse
/// table always counts its steps per row, as with lazy_rows, and momentum and decays change the rows that a
/// push touches; a dense parameter in a table is trained as it would be in this process. `choices` are for
/// parameters of sparse_embedding. Throws: Error(config) for an initializer or optimizer that a table cannot
/// honour, naming it, and for a choice whose parameter or variables are not there. With a schedule
/// (config.rate) the rules of tables are scheduled, but for those that a choice brings: the trainer says the
/// rate (ps::StepClient::set_rate). `others`: plans that may have taken initial values from the same start-up
/// program.
TablePlan distribute(engine::Program& main, engine::Program& startup, const std::string& loss,
                     const engine::OptimizerConfig& config, Placement placement,
                     const TableChoices& choices = {}, const std::vector<TablePlan*>& others = {});

}  // namespace fleetrun::runtime
