// Values as bytes and back, for the messages and journals of jobs on several hosts.
// Little-endian; see messages.h.
//
// Writer and Reader have the same calls, so that one function per type, fields(), serves both ways. Reader
// throws Error(data), and allocates nothing that the bytes at hand could not fill.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fleetrun::launcher::codec {

[[noreturn]] void refuse(std::string_view what);

class Writer {
 public:
  static constexpr bool reads = false;
  template <class Number>
  void number(const Number& value) {
    static_assert(std::is_integral_v<Number>);
    auto rest = static_cast<std::make_unsigned_t<Number>>(value);
    for (std::size_t i = 0; i < sizeof rest; ++i, rest = static_cast<decltype(rest)>(rest >> 7 >> 1))
      bytes_.push_back(static_cast<char>(rest & 0xff));
  }
  void flag(const bool& value) { number(static_cast<std::uint8_t>(value)); }
  /// Throws: Error(data) for one that is too long for a reader.
  void text(const std::string& value);
  /// 32 hexadecimal digits take 16 bytes; another text is one.
  void id(const std::string& value);
  template <class Item, class Each>
  void list(const std::vector<Item>& items, std::size_t max, std::size_t /*min*/, Each each) {
    if (items.size() > max) refuse("a list is too long");
    number(static_cast<std::uint32_t>(items.size()));
    for (const Item& item : items) each(item);
  }
  void append(std::string_view bytes) { bytes_.append(bytes); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  static constexpr bool reads = true;
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class Number>
  void number(Number& value) {
    static_assert(std::is_integral_v<Number>);
    std::make_unsigned_t<Number> got = 0;
    const std::string_view from = take(sizeof got);
    for (std::size_t i = sizeof got; i-- > 0;)
      got = static_cast<decltype(got)>(static_cast<decltype(got)>(got << 7 << 1) |
                                       static_cast<unsigned char>(from[i]));
    value = static_cast<Number>(got);
  }
  void flag(bool& value);
  void text(std::string& value);
  void id(std::string& value);
  /// `min`: bytes that each item takes at least.
  template <class Item, class Each>
  void list(std::vector<Item>& items, std::size_t max, std::size_t min, Each each) {
    std::uint32_t count = 0;
    number(count);
    if (count > max || count > bytes_.size() / min) refuse("a list is longer than its bytes");
    items.resize(count);
    for (Item& item : items) each(item);
  }
  void end() const;
  void skip_rest() noexcept { bytes_ = {}; }

 private:
  std::string_view take(std::size_t size);
  std::string_view bytes_;
};

}  // namespace fleetrun::launcher::codec
