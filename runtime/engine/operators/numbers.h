// Numbers of an operator of which some come from tensors when the program runs:
// the sizes of a reshape whose batch is a variable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine/operators.h"

namespace fleetrun::engine {

/// Attribute NAME holds the numbers. Attribute NAME_from, as long when it is there, says of each which input
/// (its index) holds it instead, in one value of type int32 or int64; -1: none does.
class Numbers {
 public:
  /// Throws: Error(config) when the two attributes or the inputs disagree.
  Numbers(const Operator& op, const std::string& name);

  /// What is known while the program is built: -1 where an input decides.
  const std::vector<std::int64_t>& declared() const noexcept { return declared_; }
  bool all_known() const noexcept { return all_known_; }
  /// Whether the k-th is known.
  bool known(std::size_t k) const noexcept { return from_.empty() || from_[k] < 0; }
  /// Throws: Error(config) when an input is not one integer.
  const std::vector<std::int64_t>& read(const std::vector<const Tensor*>& inputs);

 private:
  const Operator* op_;
  std::vector<std::int64_t> declared_;
  std::vector<std::int64_t> from_;
  std::vector<std::int64_t> now_;
  bool all_known_ = true;
};

/// All inputs of an operator that is being prepared.
std::vector<const Tensor*> inputs_of(const Preparation& preparation);

}  // namespace fleetrun::engine
