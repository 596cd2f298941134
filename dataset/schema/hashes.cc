#include "dataset/schema/hashes.h"

#include <cstddef>

namespace fleetrun::dataset {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  constexpr std::uint32_t reversed_polynomial = 0xedb88320;
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? reversed_polynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    for (std::size_t i = 1; i < 8; ++i)
      tables[i][byte] = (tables[i - 1][byte] >> 8) ^ tables[0][tables[i - 1][byte] & 0xff];
  return tables;
}

}  // namespace

constinit const Tables kCrc32Tables = make_tables();

std::uint32_t crc32(std::string_view text, std::uint32_t before) noexcept {
  for (; text.size() >= 8; text.remove_prefix(8)) before = crc32_of_eight(text.data(), before);
  std::uint32_t crc = ~before;
  for (const char byte : text)
    crc = (crc >> 8) ^ kCrc32Tables[0][(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::uint64_t fnv1a(std::string_view text, std::uint64_t before) noexcept {
  for (const char byte : text) before = (before ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return before;
}

}  // namespace fleetrun::dataset
