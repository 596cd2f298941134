// Elements of every type that hold small whole numbers, in memory that is not aligned, with guards around them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "collective/communicator.h"
#include "collective/cpu/half.h"

namespace fleetrun::tests {

using namespace collective;

inline constexpr DataType kTypes[] = {DataType::float32,  DataType::float64, DataType::float16,
                                      DataType::bfloat16, DataType::int8,    DataType::int16,
                                      DataType::int32,    DataType::int64,   DataType::uint8};
inline constexpr Operation kOperationsOf[] = {Operation::sum, Operation::prod, Operation::min, Operation::max,
                                              Operation::avg};

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

/// Elements of a type, at an address that is no multiple of their size, with guards around them.
class Elements {
 public:
  static constexpr std::size_t kGuard = 65;
  static constexpr std::byte kEmpty{0x5a};

  Elements(DataType type, std::size_t count)
      : type_(type), count_(count), bytes_(count * size_of(type) + 2 * kGuard, kEmpty) {}
  std::byte* data() { return bytes_.data() + kGuard; }
  std::byte* at(std::size_t i) { return data() + i * size_of(type_); }
  void set(std::size_t i, int value) { encode(type_, at(i), value); }
  bool is(std::size_t i, int value, int divisor = 1) {
    std::byte wanted[8];
    encode(type_, wanted, value, divisor);
    return std::memcmp(at(i), wanted, size_of(type_)) == 0;
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
  DataType type_;
  std::size_t count_;
  std::vector<std::byte> bytes_;
};

}  // namespace fleetrun::tests
