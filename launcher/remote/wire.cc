#include "launcher/remote/wire.h"

#include "runtime/base/error.h"

namespace fleetrun::launcher::remote {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorKind::data, "a launcher's message is cut short or garbled");
}

}  // namespace

void Writer::u32(std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes_.push_back(static_cast<char>(value >> shift & 255));
}

void Writer::u64(std::uint64_t value) {
  u32(static_cast<std::uint32_t>(value));
  u32(static_cast<std::uint32_t>(value >> 32));
}

void Writer::string(std::string_view value) {
  u32(static_cast<std::uint32_t>(value.size()));
  bytes_.append(value);
}

void Writer::strings(const std::vector<std::string>& values) {
  u32(static_cast<std::uint32_t>(values.size()));
  for (const std::string& value : values) string(value);
}

std::string_view Reader::take(std::size_t bytes) {
  if (bytes > rest_.size()) refuse();
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

std::uint8_t Reader::u8() {
  return static_cast<std::uint8_t>(take(1).front());
}

std::uint32_t Reader::u32() {
  std::uint32_t value = 0;
  const std::string_view bytes = take(4);
  for (std::size_t i = 0; i < 4; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

std::uint64_t Reader::u64() {
  const std::uint64_t low = u32();
  return low | static_cast<std::uint64_t>(u32()) << 32;
}

bool Reader::boolean() {
  const std::uint8_t value = u8();
  if (value > 1) refuse();
  return value == 1;
}

std::string Reader::string() {
  const std::uint32_t size = u32();
  return std::string(take(size));
}

std::size_t Reader::count(std::size_t min) {
  const std::uint32_t count = u32();
  if (count > rest_.size() / min) refuse();
  return count;
}

std::vector<std::string> Reader::strings() {
  std::vector<std::string> values(count(4));
  for (std::string& value : values) value = string();
  return values;
}

void Reader::end() const {
  if (!rest_.empty()) refuse();
}

}  // namespace fleetrun::launcher::remote
