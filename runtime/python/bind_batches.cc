// The batches of a dataset, one by one: what the engine would be handed, for whoever looks at them.

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "dataset/base/batch_source.h"
#include "runtime/python/bindings.h"
#include "runtime/python/interrupt.h"
#include "runtime/python/without_gil.h"

namespace fleetrun::python {

namespace {

using dataset::Batch;
using dataset::Slot;
using engine::DataType;
using engine::Tensor;

template <class T>
std::shared_ptr<Tensor> tensor_of(DataType type, const std::vector<T>& values, std::int64_t width) {
  auto tensor = std::make_shared<Tensor>();
  const auto count = static_cast<std::int64_t>(values.size());
  tensor->resize(type, width > 1 ? engine::Shape{count / width, width} : engine::Shape{count});
  if (count > 0) std::memcpy(tensor->data(), values.data(), tensor->bytes());
  return tensor;
}

/// [(values, offsets)] by slot, offsets None for a dense one; None after the last batch.
nb::list arrays_of(const std::vector<Slot>& slots, const Batch& batch) {
  nb::list arrays;
  for (std::size_t i = 0; i < batch.slots.size(); ++i) {
    const dataset::SlotValues& found = batch.slots[i];
    const std::int64_t width = slots[i].dense ? slots[i].width : 1;
    const auto values = slots[i].type == dataset::SlotType::float32
                            ? tensor_of(DataType::float32, found.floats, width)
                            : tensor_of(DataType::int64, found.ints, width);
    nb::object offsets = nb::none();
    if (!slots[i].dense) {
      const std::vector<std::int64_t> begins(found.offsets.begin(), found.offsets.end());
      offsets = nb::cast(tensor_of(DataType::int64, begins, 1));
    }
    arrays.append(nb::make_tuple(values, offsets));
  }
  return arrays;
}

}  // namespace

void bind_batches(nb::module_& module) {
  using SourcePtr = std::shared_ptr<dataset::BatchSource>;
  module.def(
      "start_reading",
      [](const SourcePtr& source, bool in_turn) {
        run_interruptibly([source, in_turn] { source->start(in_turn); }, [source] { source->stop(); });
      },
      "source"_a, "in_turn"_a,
      "Begins a pass; in_turn: reader r takes the files r, r + readers, … Throws: Error(data).");
  module.def(
      "stop_reading", [](const SourcePtr& source) { source->stop(); }, "source"_a,
      "Ends a pass, wherever it is.", nb::call_guard<WithoutGil>());
  module.def(
      "readers_of", [](const SourcePtr& source) { return source->readers(); }, "source"_a,
      "How many readers it has.");
  module.def(
      "read_batch",
      [](const SourcePtr& source, std::size_t reader) {
        const auto batch = std::make_shared<Batch>();
        const auto found = std::make_shared<bool>(false);
        run_interruptibly([=] { *found = source->next(reader, *batch); }, [source] { source->stop(); });
        return *found ? std::optional(arrays_of(source->slots(), *batch)) : std::nullopt;
      },
      "source"_a, "reader"_a,
      "[(values, offsets)] by slot, offsets None for a dense one; None after the reader's last batch. Shape: "
      "values "
      "[examples, width] of a dense slot, [total, 1] of another; offsets [examples + 1]. Throws: Error(data) "
      "naming "
      "file, line and slot.");
}

}  // namespace fleetrun::python
