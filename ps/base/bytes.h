// Bytes that grow as they are written; ps/base/message.h's Reader reads them back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fleetrun::ps {

class Bytes {
 public:
  template <class T>
  void value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof value);
  }
  template <class T>
  void array(std::span<const T> values) {
    append(values.data(), values.size_bytes());
  }
  /// As wire::read_text() reads it.
  void text(std::string_view text) {
    value(static_cast<std::uint32_t>(text.size()));
    append(text.data(), text.size());
  }

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  void append(const void* from, std::size_t size) {
    if (size == 0) return;
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    std::memcpy(bytes_.data() + at, from, size);
  }

  std::vector<std::byte> bytes_;
};

}  // namespace fleetrun::ps
