// One step of sync mode: the pushes of all participants become one averaged update of each table.
#pragma once

#include <vector>

#include "ps/sync/sync_epoch.h"
#include "ps/table/table_set.h"

namespace fleetrun::ps {

/// Adds the gradients up in the order of `step` (trainer, thread), divides by the number of pushes, and
/// applies each table's sum once, with the rate of the first push. A key that some pushes lack counts as zero
/// there. Throws: Error(data) when
/// a sum overflows; nothing is applied then.
void apply_averaged(const std::vector<Contribution>& step, TableSet& tables);

}  // namespace fleetrun::ps
