#include "runtime/engine/tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <string>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"

namespace fleetrun::engine {

namespace {

constexpr std::align_val_t kAlignment{64};
/// Of a table that is read at random, most of the time goes into finding its pages; larger pages are fewer.
constexpr std::size_t kLarge = std::size_t{16} << 20;

/// A hint: where the system does not grant it, all is as before.
void ask_for_large_pages(std::byte* begin, std::size_t bytes) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t lead = (page - std::bit_cast<std::uintptr_t>(begin) % page) % page;
  ::madvise(begin + lead, (bytes - lead) / page * page, MADV_HUGEPAGE);
}

template <class T>
constexpr DataType type_of() {
  if constexpr (std::is_same_v<T, float>) return DataType::float32;
  if constexpr (std::is_same_v<T, double>) return DataType::float64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DataType::int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DataType::int64;
  if constexpr (std::is_same_v<T, bool>) return DataType::boolean;
}

void check_type(DataType wanted, DataType is) {
  if (wanted == is) return;
  throw Error(ErrorKind::config,
              "a tensor of " + std::string(to_string(is)) + " was read as " + std::string(to_string(wanted)));
}

/// The number of values, whose bytes no machine has to count beyond 63 bits.
std::size_t checked_size(DataType type, const Shape& shape) {
  const bool is_negative =
      std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; });
  const std::int64_t size = is_negative ? -1 : count(shape);
  if (size >= 0 && size <= std::numeric_limits<std::int64_t>::max() / 8)
    return static_cast<std::size_t>(size);
  throw Error(ErrorKind::config,
              "a tensor of " + std::string(to_string(type)) + " cannot have the shape " + to_string(shape));
}

}  // namespace

std::size_t size_of(DataType type) noexcept {
  switch (type) {
    case DataType::float32:
    case DataType::int32:
      return 4;
    case DataType::float64:
    case DataType::int64:
      return 8;
    case DataType::boolean:
      return 1;
  }
  return 0;
}

void Tensor::Free::operator()(std::byte* pointer) const noexcept {
  ::operator delete[](pointer, kAlignment);
}

void Tensor::resize(DataType type, const Shape& shape) {
  const std::size_t size = checked_size(type, shape);
  const std::size_t bytes = size * size_of(type);
  if (bytes > capacity_bytes_) {
    buffer_.reset();
    size_ = capacity_bytes_ = 0;
    buffer_.reset(static_cast<std::byte*>(::operator new[](bytes, kAlignment)));
    if (bytes >= kLarge) ask_for_large_pages(buffer_.get(), bytes);
    capacity_bytes_ = bytes;
  }
  // Threads may look at a kept tensor that another one makes again as it is.
  if (type_ != type) type_ = type;
  if (shape_ != shape) shape_ = shape;
  if (size_ != size) size_ = size;
}

template <class T>
std::span<T> Tensor::values() {
  check_type(type_of<T>(), type_);
  return {reinterpret_cast<T*>(buffer_.get()), size_};
}

template <class T>
std::span<const T> Tensor::values() const {
  check_type(type_of<T>(), type_);
  return {reinterpret_cast<const T*>(buffer_.get()), size_};
}

template std::span<float> Tensor::values<float>();
template std::span<double> Tensor::values<double>();
template std::span<std::int32_t> Tensor::values<std::int32_t>();
template std::span<std::int64_t> Tensor::values<std::int64_t>();
template std::span<bool> Tensor::values<bool>();
template std::span<const float> Tensor::values<float>() const;
template std::span<const double> Tensor::values<double>() const;
template std::span<const std::int32_t> Tensor::values<std::int32_t>() const;
template std::span<const std::int64_t> Tensor::values<std::int64_t>() const;
template std::span<const bool> Tensor::values<bool>() const;

}  // namespace fleetrun::engine
