// The fed arrays of a step as tensors, which keep their memory from step to step.
#pragma once

#include <map>
#include <string>

#include "runtime/python/bindings.h"

namespace fleetrun::python {

class ArrayFeed {
 public:
  using Tensors = std::map<std::string, const engine::Tensor*>;

  /// Arrays, or LoDTensors: an array with what begins where in it.
  using Arrays = std::map<std::string, nb::object>;

  /// Copies the arrays; the tensors are valid until the next call.
  Tensors take(const Arrays& arrays);

 private:
  std::map<std::string, engine::Tensor> storage_;
};

}  // namespace fleetrun::python
