#include "runtime/trainer/batch_feed.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"

namespace fleetrun::runtime {

std::vector<BatchInput> inputs_of(const engine::Program& program, const std::vector<dataset::Slot>& slots) {
  std::set<std::string> read;
  for (const engine::Operator& op : program.operators()) read.insert(op.inputs.begin(), op.inputs.end());
  std::vector<BatchInput> inputs;
  for (const auto& [name, variable] : program.variables()) {
    if (!variable.is_data || !read.contains(name)) continue;
    std::size_t slot = 0;
    while (slot < slots.size() && slots[slot].name != name) ++slot;
    if (slot == slots.size()) {
      throw Error(ErrorKind::config, "the program reads '" + name + "', which is not a slot of the dataset",
                  "add it to the dataset's use_var");
    }
    const dataset::Slot& from = slots[slot];
    const auto type =
        from.type == dataset::SlotType::int64 ? engine::DataType::int64 : engine::DataType::float32;
    if (variable.type != type || (variable.lod_level == 0) != from.dense) {
      throw Error(ErrorKind::config, "slot '" + name + "' has " + (from.dense ? "dense " : "sparse ") +
                                         std::string(engine::to_string(type)) + " values, the variable is " +
                                         std::string(engine::to_string(variable.type)) + " with lod_level " +
                                         std::to_string(variable.lod_level));
    }
    inputs.push_back({slot, &variable});
  }
  return inputs;
}

BatchFeed::BatchFeed(const std::vector<BatchInput>& inputs) : inputs_(inputs), tensors_(inputs.size()) {
  for (std::size_t i = 0; i < inputs.size(); ++i) feed_[inputs[i].variable->name] = &tensors_[i];
}

void BatchFeed::fill() {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    fill(inputs_[i], batch_.slots[inputs_[i].slot], tensors_[i]);
}

void BatchFeed::fill(const BatchInput& input, const dataset::SlotValues& values,
                     engine::Tensor& tensor) const {
  const bool ids = input.variable->type == engine::DataType::int64;
  const std::size_t size = ids ? values.ints.size() : values.floats.size();
  engine::Shape shape = input.variable->shape;
  if (shape.empty()) shape.push_back(-1);
  const std::size_t width =
      size / std::max<std::size_t>(input.variable->lod_level > 0 ? size : batch_.rows, 1);
  // The first dimension is the batch (or the values of all its examples); the others as declared.
  shape[0] = static_cast<std::int64_t>(input.variable->lod_level > 0 ? size : batch_.rows);
  std::int64_t known = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) known *= std::max<std::int64_t>(shape[d], 1);
  for (std::size_t d = 1; d < shape.size(); ++d) {
    if (shape[d] < 0) shape[d] = static_cast<std::int64_t>(width) / known;
  }
  if (engine::count(shape) != static_cast<std::int64_t>(size)) {
    throw Error(ErrorKind::config, "slot '" + input.variable->name + "' has " + std::to_string(width) +
                                       " values per example, the variable's shape is " +
                                       engine::to_string(input.variable->shape));
  }
  tensor.resize(input.variable->type, shape);
  tensor.offsets = values.offsets;
  const void* from = ids ? static_cast<const void*>(values.ints.data()) : values.floats.data();
  if (size > 0) std::memcpy(tensor.data(), from, tensor.bytes());
}

}  // namespace fleetrun::runtime
