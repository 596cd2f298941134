// Columnar files where a QueueDataset was asked for: the same epoch over them.
#pragma once

#include "dataset/columnar/columnar_dataset.h"
#include "dataset/queue/queue_dataset.h"

namespace fleetrun::dataset {

/// Throws: Error(config) where not all files are columnar ones, and for what can be done with text only: pipe
/// commands, downloads, a schema, and ids, contents and log keys before the slots.
ColumnarDatasetOptions columns_for_queue(const QueueDatasetOptions& options);

}  // namespace fleetrun::dataset
