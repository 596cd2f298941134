// One step of sync mode: the pushes of all participants become one averaged update of each table.
#pragma once

#include <vector>

#include "ps/sync/sync_epoch.h"
#include "ps/table/table_set.h"

namespace fleetrun::ps {

/// The pushes of a step, in the order (trainer, thread).
using Requests = std::vector<const wire::PushRequest*>;

/// The sum of the squares of the mean gradients of this server's part of each table that is clipped to a
/// norm (TableSet::clipped_to_norm). Throws: Error(data) when a sum overflows.
std::vector<float> mean_squares(const Requests& step, const TableSet& tables);

/// Adds the gradients up in the order of `step` (trainer, thread), divides by the number of pushes, clips,
/// and applies each table's sum once, with the rate of the first push. A key that some pushes lack counts as
/// zero there. Throws: Error(data) when a sum overflows, or no push says the squares of all of several
/// servers; nothing is applied then.
void apply_averaged(const std::vector<Contribution>& step, TableSet& tables);

}  // namespace fleetrun::ps
