// What the tables of a server have for their rows: memory up to a budget, and a place for those beyond it.
#pragma once

#include <memory>

#include "ps/table/cold_rows.h"
#include "ps/table/memory_budget.h"

namespace fleetrun::ps {

/// Both or none: without them rows stay in memory. Only tables that say so (TableConfig::on_disk) use it.
struct TableMemory {
  std::shared_ptr<ColdStore> cold = {};
  std::shared_ptr<MemoryBudget> budget = {};
};

}  // namespace fleetrun::ps
