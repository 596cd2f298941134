// The batches of a dataset, one by one: what the engine would be handed, for whoever looks at them.

#include <pybind11/pybind11.h>

#include <cstring>
#include <memory>
#include <vector>

#include "dataset/base/batch_source.h"
#include "runtime/python/bindings.h"
#include "runtime/python/interrupt.h"
#include "runtime/python/without_gil.h"

namespace fleetrun::python {

namespace {

namespace py = pybind11;
using namespace py::literals;
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
py::object arrays_of(const std::vector<Slot>& slots, const Batch& batch) {
  py::list arrays;
  for (std::size_t i = 0; i < batch.slots.size(); ++i) {
    const dataset::SlotValues& found = batch.slots[i];
    const std::int64_t width = slots[i].dense ? slots[i].width : 1;
    const auto values = slots[i].type == dataset::SlotType::float32
                            ? tensor_of(DataType::float32, found.floats, width)
                            : tensor_of(DataType::int64, found.ints, width);
    const py::object offsets =
        slots[i].dense
            ? py::object(py::none())
            : py::cast(tensor_of(DataType::int64,
                                 std::vector<std::int64_t>(found.offsets.begin(), found.offsets.end()), 1));
    arrays.append(py::make_tuple(values, offsets));
  }
  return arrays;
}

}  // namespace

void bind_batches(py::module_& module) {
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
      "Ends a pass, wherever it is.", py::call_guard<WithoutGil>());
  module.def(
      "readers_of", [](const SourcePtr& source) { return source->readers(); }, "source"_a,
      "How many readers it has.");
  module.def(
      "read_batch",
      [](const SourcePtr& source, std::size_t reader) {
        const auto batch = std::make_shared<Batch>();
        const auto found = std::make_shared<bool>(false);
        run_interruptibly([=] { *found = source->next(reader, *batch); }, [source] { source->stop(); });
        return *found ? arrays_of(source->slots(), *batch) : py::none();
      },
      "source"_a, "reader"_a,
      "[(values, offsets)] by slot, offsets None for a dense one; None after the reader's last batch. Shape: "
      "values "
      "[examples, width] of a dense slot, [total, 1] of another; offsets [examples + 1]. Throws: Error(data) "
      "naming "
      "file, line and slot.");
}

}  // namespace fleetrun::python
