#include "runtime/base/codec.h"

#include "runtime/base/error.h"
#include "runtime/base/hex.h"

namespace fleetrun::codec {
namespace {

constexpr std::size_t kIdBytes = 16;

std::optional<std::string> bytes_of_id(const std::string& text) {
  return text.size() == 2 * kIdBytes ? from_hex(text) : std::nullopt;
}

}  // namespace

void refuse(std::string_view what) {
  throw Error(ErrorKind::data, "a message cannot be read: " + std::string(what));
}

void Writer::text(std::string_view value) {
  if (value.size() > max_text_)
    refuse("a text of it is longer than " + std::to_string(max_text_ / 1024) + " KiB");
  number(static_cast<std::uint32_t>(value.size()));
  bytes_.append(value);
}

void Writer::id(const std::string& value) {
  const std::optional<std::string> bytes = bytes_of_id(value);
  number(static_cast<std::uint8_t>(bytes ? kIdBytes : 0));
  if (!bytes) return text(value);
  bytes_.append(*bytes);
}

void Reader::flag(bool& value) {
  std::uint8_t got = 0;
  number(got);
  if (got > 1) refuse("neither yes nor no");
  value = got == 1;
}

void Reader::text(std::string& value) {
  std::uint32_t size = 0;
  number(size);
  if (size > max_text_) refuse("a text of it is longer than " + std::to_string(max_text_ / 1024) + " KiB");
  value = take(size);
}

void Reader::id(std::string& value) {
  std::uint8_t size = 0;
  number(size);
  if (size == kIdBytes) {
    value = hex(take(size));
    return;
  }
  if (size != 0) refuse("an identity of an odd length");
  text(value);
  if (bytes_of_id(value)) refuse("an identity in its long form");  // one form for each value
}

void Reader::end() const {
  if (!bytes_.empty()) refuse("it is too long");
}

std::string_view Reader::take(std::size_t size) {
  if (size > bytes_.size()) refuse("it is too short");
  const std::string_view taken = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return taken;
}

std::optional<std::string_view> first_frame(std::string_view buffer, std::size_t min, std::size_t max) {
  std::uint32_t length = 0;
  if (buffer.size() < sizeof length) return std::nullopt;
  Reader(buffer).number(length);
  if (length < min || length > max) refuse("it has " + std::to_string(length) + " bytes");
  buffer.remove_prefix(sizeof length);
  return buffer.size() < length ? std::nullopt : std::optional(buffer.substr(0, length));
}

}  // namespace fleetrun::codec
