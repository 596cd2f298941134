#include "runtime/base/hex.h"

namespace fleetrun {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

std::string hex(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size() + 1);  // a secret leaves no copy behind, nor when its line is ended
  for (const char byte : bytes) {
    text += kHexDigits[static_cast<unsigned char>(byte) >> 4];
    text += kHexDigits[byte & 0xF];
  }
  return text;
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0 || text.find_first_not_of(kHexDigits) != text.npos) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes += static_cast<char>(kHexDigits.find(text[i]) << 4 | kHexDigits.find(text[i + 1]));
  return bytes;
}

}  // namespace fleetrun
