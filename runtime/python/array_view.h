// An array of any library that speaks DLPack (numpy, PyTorch, …), as contiguous elements in memory: nothing
// is copied, and what is written through the view is written to the array.
#pragma once

#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "collective/base/call.h"
#include "runtime/python/conversions.h"

namespace fleetrun::python {

class ArrayView {
 public:
  /// Takes what `__dlpack__()` returned, or the array.
  /// `stream`: of an array on a GPU, the cudaStream_t that makes its values.
  /// Throws: Error(config) for elements that collectives do not have, for an array with gaps, and for one
  /// that is neither in the host's memory nor on a GPU of CUDA's.
  ArrayView(const nb::ndarray<>& array, std::uintptr_t stream);

  /// `count` elements of the host's memory that lie behind each other; `owner` keeps them.
  ArrayView(std::uintptr_t address, std::size_t count, collective::DataType type, const nb::object& owner);

  void* data() const noexcept { return data_; }
  std::size_t count() const noexcept { return count_; }
  std::size_t bytes() const noexcept { return count_ * collective::size_of(type_); }
  collective::DataType type() const noexcept { return type_; }
  /// The GPU where it lies, as CUDA counts those that it sees; nothing: the host's memory.
  std::optional<int> device() const noexcept { return device_; }
  void* stream() const noexcept { return stream_; }

 private:
  std::shared_ptr<void> owner_;  // keeps the array; let go of under the GIL
  void* data_ = nullptr;
  std::size_t count_ = 0;
  collective::DataType type_ = collective::DataType::float32;
  std::optional<int> device_;
  void* stream_ = nullptr;
};

}  // namespace fleetrun::python
