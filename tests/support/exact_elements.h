// Elements of every type that hold small whole numbers, in memory that is not aligned,
// with guards around them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "collective/base/communicator.h"
#include "collective/cpu/half.h"

namespace fleetrun::tests {

using namespace collective;

inline constexpr DataType kTypes[] = {DataType::float32,  DataType::float64, DataType::float16,
                                      DataType::bfloat16, DataType::int8,    DataType::int16,
                                      DataType::int32,    DataType::int64,   DataType::uint8};
inline constexpr Operation kOperationsOf[] = {Operation::sum,    Operation::prod,   Operation::min,
                                              Operation::max,    Operation::avg,    Operation::bit_and,
                                              Operation::bit_or, Operation::bit_xor};

/// Whether ranks can combine elements of the type so.
inline bool combines(Operation operation, DataType type) {
  return !is_of_bits(operation) || type >= DataType::int8;
}

/// What ranks give repeats after so many elements.
inline constexpr std::size_t kPeriod = 40;

/// What a rank gives: for products few twos among ones, else 0 to 4. Sums of 25 ranks fit every type.
inline int given(Operation operation, int rank, std::size_t i) {
  const std::size_t mixed = i + static_cast<std::size_t>(rank) * 7;
  if (operation == Operation::prod) return mixed % 8 == 0 ? 2 : 1;
  return static_cast<int>(mixed % 5);
}

template <class Value>
void put(std::byte* at, Value value) {
  std::memcpy(at, &value, sizeof value);
}

/// `value` divided by `divisor` as an element of the type.
inline void encode(DataType type, std::byte* at, int value, int divisor = 1) {
  const float single = static_cast<float>(value) / static_cast<float>(divisor);
  switch (type) {
    case DataType::float32:
      return put(at, single);
    case DataType::float64:
      return put(at, static_cast<double>(value) / divisor);
    case DataType::float16:
      return put(at, to_float16(single));
    case DataType::bfloat16:
      return put(at, to_bfloat16(single));
    case DataType::int8:
      return put(at, static_cast<std::int8_t>(value / divisor));
    case DataType::int16:
      return put(at, static_cast<std::int16_t>(value / divisor));
    case DataType::int32:
      return put(at, static_cast<std::int32_t>(value / divisor));
    case DataType::int64:
      return put(at, static_cast<std::int64_t>(value / divisor));
    case DataType::uint8:
      return put(at, static_cast<std::uint8_t>(value / divisor));
  }
}

/// Elements of a type, at an address that is not a multiple of their size, with guards around them.
class Elements {
 public:
  static constexpr std::size_t kGuard = 65;
  static constexpr std::byte kEmpty{0x5a};

  Elements(DataType type, std::size_t count)
      : type_(type), count_(count), bytes_(count * size_of(type) + 2 * kGuard, kEmpty) {}
  std::byte* data() { return bytes_.data() + kGuard; }
  std::byte* at(std::size_t i) { return data() + i * size_of(type_); }
  /// Elements `first` to `first + count` become value(0), value(1) …, which repeat after kPeriod.
  template <class Value>
  void fill(std::size_t first, std::size_t count, const Value& value) {
    const std::vector<std::byte> period = period_of(value, 1);
    for (std::size_t i = 0; i < count; i += kPeriod)
      std::memcpy(at(first + i), period.data(), std::min(kPeriod, count - i) * size_of(type_));
  }
  /// How many of them are something else than that, divided by `divisor`.
  template <class Value>
  std::size_t differing(std::size_t first, std::size_t count, const Value& value, int divisor = 1) {
    const std::vector<std::byte> period = period_of(value, divisor);
    const std::size_t width = size_of(type_);
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; i += kPeriod) {
      const std::size_t block = std::min(kPeriod, count - i);
      if (std::memcmp(at(first + i), period.data(), block * width) == 0) continue;
      for (std::size_t k = 0; k < block; ++k)
        found += std::memcmp(at(first + i + k), period.data() + k * width, width) == 0 ? 0 : 1;
    }
    return found;
  }
  /// Bytes around the elements that have been written.
  std::size_t overrun() const {
    const auto clean = [](std::byte byte) { return byte == kEmpty; };
    return kGuard - static_cast<std::size_t>(std::count_if(bytes_.begin(), bytes_.begin() + kGuard, clean)) +
           kGuard - static_cast<std::size_t>(std::count_if(bytes_.end() - kGuard, bytes_.end(), clean));
  }
  Buffer buffer() { return {data(), count_, type_}; }
  ConstBuffer input() { return {data(), count_, type_}; }

 private:
  template <class Value>
  std::vector<std::byte> period_of(const Value& value, int divisor) const {
    std::vector<std::byte> period(kPeriod * size_of(type_));
    for (std::size_t i = 0; i < kPeriod; ++i)
      encode(type_, period.data() + i * size_of(type_), value(i), divisor);
    return period;
  }

  DataType type_;
  std::size_t count_;
  std::vector<std::byte> bytes_;
};

}  // namespace fleetrun::tests
