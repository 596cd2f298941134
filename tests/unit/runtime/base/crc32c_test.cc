#include "runtime/base/crc32c.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using fleetrun::crc32c;

namespace {

std::uint32_t of(const std::string& text) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

TEST_CASE("the checksums of RFC 3720 come out") {
  CHECK(of("123456789") == 0xe3069283u);
  CHECK(of(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(of(std::string(32, '\xff')) == 0x62a8ab43u);
  std::string counting(32, '\0');
  for (std::size_t i = 0; i < 32; ++i) counting[i] = static_cast<char>(i);
  CHECK(of(counting) == 0x46dd794eu);
  CHECK(of("") == 0);
}

TEST_CASE("a checksum can be taken in parts") {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    CHECK(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))) == of(text));
  }
}

TEST_CASE("the processor's instruction and the tables agree") {
  std::string text;
  std::uint32_t state = 1;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  for (std::size_t begin = 0; begin < 20; ++begin) {
    for (std::size_t size = 0; size < 100; ++size) {
      const auto bytes = std::as_bytes(std::span(text.data() + begin, size));
      REQUIRE(crc32c(bytes, 7) == fleetrun::crc32c_by_tables(bytes, 7));
    }
  }
}
