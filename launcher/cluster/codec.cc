#include "launcher/cluster/codec.h"

#include <algorithm>

#include "launcher/cluster/messages.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher::codec {
namespace {

constexpr std::size_t kIdBytes = 16;
constexpr std::string_view kDigits = "0123456789abcdef";

bool is_id(std::string_view text) {
  return text.size() == 2 * kIdBytes && text.find_first_not_of(kDigits) == std::string_view::npos;
}

unsigned value_of(char digit) {
  return static_cast<unsigned>(kDigits.find(digit));
}

}  // namespace

void refuse(std::string_view what) {
  throw Error(ErrorKind::data, "a message between hosts cannot be read: " + std::string(what));
}

void Writer::text(const std::string& value) {
  if (value.size() > kMaxText) refuse("a text of it is longer than 64 KiB");
  number(static_cast<std::uint32_t>(value.size()));
  bytes_.append(value);
}

void Writer::id(const std::string& value) {
  number(static_cast<std::uint8_t>(is_id(value) ? kIdBytes : 0));
  if (!is_id(value)) return text(value);
  for (std::size_t i = 0; i < value.size(); i += 2)
    bytes_.push_back(static_cast<char>(value_of(value[i]) << 4 | value_of(value[i + 1])));
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
  if (size > kMaxText) refuse("a text of it is longer than 64 KiB");
  value = take(size);
}

void Reader::id(std::string& value) {
  std::uint8_t size = 0;
  number(size);
  if (size == 0) {
    text(value);
    if (is_id(value)) refuse("an identity in its long form");  // one form for each value
    return;
  }
  if (size != kIdBytes) refuse("an identity of an odd length");
  value.clear();
  for (const char c : take(kIdBytes)) {
    value.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    value.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
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

}  // namespace fleetrun::launcher::codec
