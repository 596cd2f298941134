// Columnar files as a source of batches, in the place of QueueDataset.

#include <memory>

#include "dataset/columnar/columnar_dataset.h"
#include "dataset/columnar/queue_columns.h"
#include "runtime/python/bindings.h"

namespace fleetrun::python {

void bind_columnar(nb::module_& module) {
  using dataset::BatchSource;
  using dataset::ColumnarDataset;
  using dataset::QueueDatasetOptions;
  nb::class_<ColumnarDataset, BatchSource>(
      module, "ColumnarDataset",
      "Batches of columnar files (.frc). Throws: Error(data) naming file and column.")
      .def(nb::new_([](const QueueDatasetOptions& options) {
             return std::make_shared<ColumnarDataset>(dataset::columns_for_queue(options));
           }),
           "options"_a)
      .def(
          "bad_lines", [](const ColumnarDataset&) { return dataset::BadLineReport(); },
          "None: there are no lines.");
}

}  // namespace fleetrun::python
