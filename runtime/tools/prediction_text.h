// What a model has computed for the rows of a batch, as lines. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/engine/tensor.h"

namespace fleetrun::inference {

struct Fetched {
  std::string name;
  const engine::Tensor* tensor;
};

/// A line for each row: values with spaces between them, tabs between two tensors. Floats have the fewest
/// digits that read back as the same number.
/// Shapes: [rows, …]; with offsets [values of all rows, …].
/// Throws: Error(config) naming a tensor of another shape.
std::string prediction_text(std::span<const Fetched> fetched, std::size_t rows);

/// The same as JSON: {"NAME": value, or [value, …] where a row may have another number than one};
/// nan and infinities are strings.
std::string prediction_json(std::span<const Fetched> fetched, std::size_t rows);

}  // namespace fleetrun::inference
