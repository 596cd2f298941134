// From a batch of a dataset to the tensors that a program's data variables are fed with.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "dataset/base/batch.h"
#include "runtime/engine/executor.h"
#include "runtime/engine/program.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::runtime {

/// Tensors by the name of the data variable that each is for.
using Feed = std::map<std::string, const engine::Tensor*>;

/// A slot of the dataset and the data variable that it feeds. Borrows the program's variable.
struct BatchInput {
  std::size_t slot;
  const engine::Variable* variable;
};

/// What feeds each data variable that the program reads. `slots` are the used ones, as batches have them.
/// Throws: Error(config) for a variable without a slot, and for one whose type or kind is not the slot's.
std::vector<BatchInput> inputs_of(const engine::Program& program, const std::vector<dataset::Slot>& slots);

/// One batch as tensors; buffers are kept from batch to batch.
///
/// Threads: one.
class BatchFeed {
 public:
  /// Borrows `inputs`.
  explicit BatchFeed(const std::vector<BatchInput>& inputs);
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  /// To be filled by a reader; then fill() makes feed() of it.
  dataset::Batch& batch() noexcept { return batch_; }
  std::size_t rows() const noexcept { return batch_.rows; }
  /// Shapes: [rows, …] as the variable is declared; with lod_level 1 [values of all rows, …], and offsets.
  /// Throws: Error(config) where the slot's width is not the variable's.
  void fill();
  const Feed& feed() const noexcept { return feed_; }

 private:
  void fill(const BatchInput& input, const dataset::SlotValues& values, engine::Tensor& tensor) const;

  const std::vector<BatchInput>& inputs_;
  dataset::Batch batch_;
  std::vector<engine::Tensor> tensors_;
  Feed feed_;
};

}  // namespace fleetrun::runtime
