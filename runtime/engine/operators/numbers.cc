#include "runtime/engine/operators/numbers.h"

namespace fleetrun::engine {

Numbers::Numbers(const Operator& op, const std::string& name)
    : op_(&op),
      declared_(attribute<std::vector<std::int64_t>>(op, name)),
      from_(attribute(op, name + "_from", std::vector<std::int64_t>())) {
  if (!from_.empty() && from_.size() != declared_.size()) {
    fail(op, "attributes '" + name + "' and '" + name + "_from' differ in length");
  }
  for (std::size_t k = 0; k < from_.size(); ++k) {
    if (from_[k] < 0) continue;
    if (static_cast<std::size_t>(from_[k]) >= op.inputs.size()) {
      fail(op, "attribute '" + name + "_from' names input " + std::to_string(from_[k]));
    }
    declared_[k] = -1;
    all_known_ = false;
  }
  now_ = declared_;
}

const std::vector<std::int64_t>& Numbers::read(const std::vector<const Tensor*>& inputs) {
  for (std::size_t k = 0; k < from_.size(); ++k) {
    if (from_[k] < 0) continue;
    const Tensor& tensor = *inputs[static_cast<std::size_t>(from_[k])];
    if (tensor.size() == 1 && tensor.type() == DataType::int32) {
      now_[k] = tensor.values<std::int32_t>()[0];
    } else if (tensor.size() == 1 && tensor.type() == DataType::int64) {
      now_[k] = tensor.values<std::int64_t>()[0];
    } else {
      fail(*op_, "'" + op_->inputs[static_cast<std::size_t>(from_[k])] + "' is " +
                     std::string(to_string(tensor.type())) + " " + to_string(tensor.shape()) +
                     ", and one integer is needed");
    }
  }
  return now_;
}

std::vector<const Tensor*> inputs_of(const Preparation& preparation) {
  std::vector<const Tensor*> inputs;
  for (std::size_t i = 0; i < preparation.inputs(); ++i) inputs.push_back(preparation.input(i));
  return inputs;
}

}  // namespace fleetrun::engine
