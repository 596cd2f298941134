// Values as bytes and back, for what the processes of a job tell each other and for journals. Little-endian:
//
//   text := u32 length | bytes       list := u32 count | items       optional := u8 0 | u8 1 and the value
//   id := u8 16 | 16 bytes, of a text of 32 hexadecimal digits; or u8 0 | text
//   variant := u8 index | the alternative
//
// Writer and Reader have the same calls, so one function serves both ways: a structure T has
//
//   template <class Archive, class Value>            // Value: T, or const T for a Writer
//   void fields(Archive& archive, Value& value, const T*) { archive(value.first, value.second); }
//
// in its own namespace. Reader throws Error(data), and allocates nothing that the bytes at hand could not
// fill.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/endpoint.h"

namespace fleetrun::codec {

/// Throws: Error(data), "a message cannot be read: `what`".
[[noreturn]] void refuse(std::string_view what);

constexpr std::size_t kNoLimit = 0xffffffff;

/// Bytes that a value takes at least: what the length of a list of them is checked against.
template <class Value>
inline constexpr std::size_t kMinBytes = std::is_integral_v<Value> ? sizeof(Value) : 1;
template <>
inline constexpr std::size_t kMinBytes<std::string> = 4;
template <class One, class Other>
inline constexpr std::size_t kMinBytes<std::pair<One, Other>> = kMinBytes<One> + kMinBytes<Other>;

template <class Archive, class Value>
void field(Archive& archive, Value& value);

class Writer {
 public:
  static constexpr bool reads = false;
  /// `max_text`: the longest text that its reader takes.
  explicit Writer(std::size_t max_text = kNoLimit) : max_text_(max_text) {}

  template <class... Values>
  void operator()(const Values&... values) {
    (field(*this, values), ...);
  }
  template <class Number>
  void number(const Number& value) {
    auto rest = static_cast<std::make_unsigned_t<Number>>(value);
    for (std::size_t i = 0; i < sizeof rest; ++i, rest = static_cast<decltype(rest)>(rest >> 7 >> 1))
      bytes_.push_back(static_cast<char>(rest & 0xff));
  }
  void flag(const bool& value) { number(static_cast<std::uint8_t>(value)); }
  /// Throws: Error(data) for one that is too long for a reader.
  void text(std::string_view value);
  void id(const std::string& value);
  template <class Item, class Each>
  void list(const std::vector<Item>& items, std::size_t max, std::size_t /*min*/, Each each) {
    if (items.size() > max) refuse("a list is too long");
    number(static_cast<std::uint32_t>(items.size()));
    for (const Item& item : items) each(item);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
  std::size_t max_text_;
};

class Reader {
 public:
  static constexpr bool reads = true;
  explicit Reader(std::string_view bytes, std::size_t max_text = kNoLimit)  // borrowed
      : bytes_(bytes), max_text_(max_text) {}

  template <class... Values>
  void operator()(Values&... values) {
    (field(*this, values), ...);
  }
  template <class Number>
  void number(Number& value) {
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
  /// Throws: Error(data) where something is left.
  void end() const;
  void skip_rest() noexcept { bytes_ = {}; }

 private:
  std::string_view take(std::size_t size);
  std::string_view bytes_;
  std::size_t max_text_;
};

/// Bytes with their length before them, as they follow each other on a stream.
inline std::string framed(std::string_view body) {
  Writer writer;
  writer.text(body);
  return writer.take();
}
/// The first of `buffer`, a part of it; nullopt until it has come as a whole.
/// Throws: Error(data) for a length that is not within `min` and `max`.
std::optional<std::string_view> first_frame(std::string_view buffer, std::size_t min, std::size_t max);

/// An enumeration whose last value is `max`.
template <class Archive, class Value>
void choice(Archive& archive, Value& value, int max) {
  auto number = static_cast<std::uint8_t>(value);
  archive.number(number);
  if (number > max) refuse("an unknown word");
  if constexpr (Archive::reads) value = static_cast<Value>(number);
}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Endpoint*) {
  archive(value.host, value.port);
}

template <class Archive, class Value, class One, class Other>
void fields(Archive& archive, Value& value, const std::pair<One, Other>*) {
  archive(value.first, value.second);
}

template <class Archive, class Value, class Item>
void fields(Archive& archive, Value& value, const std::vector<Item>*) {
  archive.list(value, kNoLimit, kMinBytes<Item>, [&archive](auto& item) { archive(item); });
}

template <class Archive, class Value, class Key, class Item, class Less>
void fields(Archive& archive, Value& value, const std::map<Key, Item, Less>*) {
  std::vector<std::pair<Key, Item>> items(value.begin(), value.end());
  archive(items);
  if constexpr (Archive::reads) value = {items.begin(), items.end()};
}

template <class Archive, class Value, class Item>
void fields(Archive& archive, Value& value, const std::optional<Item>*) {
  bool is_given = value.has_value();
  archive.flag(is_given);
  if constexpr (Archive::reads) {
    if (is_given) value.emplace();
  }
  if (is_given) archive(*value);
}

template <class Archive, class Value, class Count, class Period>
void fields(Archive& archive, Value& value, const std::chrono::duration<Count, Period>*) {
  std::int64_t count = value.count();
  archive.number(count);
  if constexpr (Archive::reads) value = Value(static_cast<Count>(count));
}

template <class Archive, class Value, class... Items>
void fields(Archive& archive, Value& value, const std::variant<Items...>*) {
  auto index = static_cast<std::uint8_t>(value.index());
  archive.number(index);
  if constexpr (Archive::reads) {
    std::uint8_t at = 0;
    if (!((at++ == index && (value = Items(), true)) || ...)) refuse("it is of an unknown type");
  }
  std::visit(archive, value);
}

template <class Archive, class Value>
void field(Archive& archive, Value& value) {
  using Plain = std::remove_const_t<Value>;
  if constexpr (std::is_same_v<Plain, bool>) {
    archive.flag(value);
  } else if constexpr (std::is_integral_v<Plain>) {
    archive.number(value);
  } else if constexpr (std::is_same_v<Plain, std::string>) {
    archive.text(value);
  } else {
    fields(archive, value, static_cast<const Plain*>(nullptr));
  }
}

}  // namespace fleetrun::codec
