// Short spellings for tests that build programs and feed tensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/engine/executor.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/engine/program.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::tests {

template <class T>
engine::Tensor tensor_of(engine::DataType type, const engine::Shape& shape, const std::vector<T>& values) {
  engine::Tensor tensor(type, shape);
  std::size_t i = 0;
  for (T& value : tensor.values<T>()) value = values.at(i++);
  return tensor;
}

inline engine::Tensor floats(const engine::Shape& shape, const std::vector<float>& values) {
  return tensor_of<float>(engine::DataType::float32, shape, values);
}

inline engine::Tensor ints(const engine::Shape& shape, const std::vector<std::int64_t>& values) {
  return tensor_of<std::int64_t>(engine::DataType::int64, shape, values);
}

inline std::vector<float> floats_of(const engine::Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

inline std::vector<std::int64_t> ints_of(const engine::Tensor& tensor) {
  const auto values = tensor.values<std::int64_t>();
  return {values.begin(), values.end()};
}

inline void add_data(engine::Program& program, const std::string& name, engine::DataType type,
                     const engine::Shape& shape, int lod_level = 0) {
  engine::Variable variable;
  variable.name = name;
  variable.type = type;
  variable.shape = shape;
  variable.lod_level = lod_level;
  variable.is_data = true;
  program.add_variable(variable);
}

/// A trainable parameter, with `value` in `scope`.
inline void add_parameter(engine::Program& program, engine::Scope& scope, const std::string& name,
                          const engine::Tensor& value) {
  engine::Variable variable;
  variable.name = name;
  variable.shape = value.shape();
  variable.persistable = variable.trainable = true;
  variable.stop_gradient = false;
  program.add_variable(variable);
  engine::Tensor& tensor = scope.tensor(name);
  tensor.resize(value.type(), value.shape());
  std::size_t i = 0;
  for (float& each : tensor.values<float>()) each = value.values<float>()[i++];
}

/// Appends an operator with one output of that name, and returns the name.
inline std::string add(engine::Program& program, const std::string& type, std::vector<std::string> inputs,
                       const std::string& output, std::map<std::string, engine::Attribute> attributes = {}) {
  program.append({type, std::move(inputs), {output}, std::move(attributes)});
  return output;
}

}  // namespace fleetrun::tests
