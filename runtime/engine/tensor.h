// A tensor in memory: type, shape, contiguous row-major values. Owns its buffer; resize keeps the capacity,
// so that a tensor that is filled again batch after batch allocates once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/engine/program.h"

namespace fleetrun::engine {

std::size_t size_of(DataType type) noexcept;

class Tensor {
 public:
  Tensor() = default;
  Tensor(DataType type, const Shape& shape) { resize(type, shape); }

  /// Contents are undefined after a resize.
  void resize(DataType type, const Shape& shape);

  DataType type() const noexcept { return type_; }
  const Shape& shape() const noexcept { return shape_; }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return size_ * size_of(type_); }

  /// 64-byte aligned.
  void* data() noexcept { return buffer_.get(); }
  const void* data() const noexcept { return buffer_.get(); }
  /// The values as T. Throws: Error(config) when T is not this tensor's type.
  template <class T>
  std::span<T> values();
  template <class T>
  std::span<const T> values() const;

  /// LoD of a sparse input: example r owns rows [offsets[r], offsets[r + 1]); empty for a dense tensor.
  std::vector<std::size_t> offsets;

 private:
  struct Free {
    void operator()(std::byte* pointer) const noexcept;
  };
  DataType type_ = DataType::float32;
  Shape shape_;
  std::size_t size_ = 0;
  std::size_t capacity_bytes_ = 0;
  std::unique_ptr<std::byte[], Free> buffer_;
};

}  // namespace fleetrun::engine
