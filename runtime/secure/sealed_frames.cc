#include "runtime/secure/sealed_frames.h"

#include "runtime/base/defences.h"
#include "runtime/base/error.h"

namespace fleetrun {
namespace {

constexpr std::size_t kLengthBytes = 4, kSealBytes = 16;
constexpr std::size_t kKept = 65'536;  // of memory, by a connection on which nothing is on its way
static_assert(kFrameOverhead == kLengthBytes + kSealBytes);

template <std::size_t count>
std::array<char, count> little_endian(std::uint64_t value) {
  std::array<char, count> bytes = {};
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xFF);
    value >>= 8;
  }
  return bytes;
}

std::uint32_t read_length(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

Digest seal_of(KeyedHash& hash, std::uint64_t number, std::string_view length, std::string_view body) {
  const auto number_bytes = little_endian<8>(number);
  return hash.of({{number_bytes.data(), number_bytes.size()}, length, body});
}

std::string_view key_view(const Digest& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

}  // namespace

FrameSealer::FrameSealer(const Digest& key) : hash_(key_view(key)) {}

void FrameSealer::seal(std::string_view body, std::string& bytes) {
  bytes.reserve(bytes.size() + body.size() + kFrameOverhead);
  std::string seal;
  seal_apart(body, bytes, seal);
  bytes.append(body).append(seal);
}

void FrameSealer::seal_apart(std::string_view body, std::string& before, std::string& after) {
  const auto length = little_endian<kLengthBytes>(body.size());
  const Digest digest = seal_of(hash_, number_, {length.data(), length.size()}, body);
  number_ += defends("numbered frames") ? 1 : 0;
  before.append(length.data(), length.size());
  after.append(reinterpret_cast<const char*>(digest.data()), kSealBytes);
}

FrameOpener::FrameOpener(const Digest& key, std::size_t max_bytes)
    : hash_(key_view(key)), max_bytes_(max_bytes) {}

std::optional<std::string_view> FrameOpener::next() {
  if (taken_ == received_.size() ||
      taken_ > kKept) {  // not at every frame: what is left would be moved each time
    received_.erase(0, taken_);
    taken_ = 0;
    if (received_.empty() && received_.capacity() > kKept) received_.shrink_to_fit();
  }
  const std::string_view rest = std::string_view(received_).substr(taken_);
  if (rest.size() < kLengthBytes) return std::nullopt;
  const std::uint32_t length = read_length(rest);
  if (length > max_bytes_ && defends("longest message"))
    throw Error(ErrorKind::data, "a message of " + std::to_string(length) + " bytes: at most " +
                                     std::to_string(max_bytes_) + " are taken");
  if (rest.size() < kFrameOverhead + length) return std::nullopt;
  const std::string_view body = rest.substr(kLengthBytes, length);
  const Digest expected = seal_of(hash_, number_, rest.substr(0, kLengthBytes), body);
  if (defends("sealed frames") && !equal_in_constant_time(rest.substr(kLengthBytes + length, kSealBytes),
                                                          key_view(expected).substr(0, kSealBytes)))
    throw Error(ErrorKind::data, "message " + std::to_string(number_) +
                                     " of the connection was changed on the way, or is from another sender");
  number_ += defends("numbered frames") ? 1 : 0;
  taken_ += kFrameOverhead + length;
  return body;
}

}  // namespace fleetrun
