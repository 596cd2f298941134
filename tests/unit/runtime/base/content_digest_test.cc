#include "runtime/base/content_digest.h"

#include <doctest/doctest.h>

#include <string>

using fleetrun::ContentDigest;

namespace {

std::uint64_t digest_of(const std::string& text, std::size_t part) {
  ContentDigest digest;
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  for (std::size_t at = 0; at < bytes.size(); at += part) {
    digest.add(bytes.subspan(at, std::min(part, bytes.size() - at)));
  }
  return digest.value();
}

}  // namespace

TEST_CASE("the digests that are known for XXH64 come out") {
  CHECK(digest_of("", 1) == 0xef46db3751d8e999ULL);
  CHECK(digest_of("a", 1) == 0xd24ec4f1a98c6e5bULL);
  CHECK(digest_of("abc", 3) == 0x44bc2cf5ad770999ULL);
}

TEST_CASE("the parts in which bytes come do not matter") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  const std::uint64_t whole = digest_of(text, text.size());
  for (std::size_t part = 1; part < 70; ++part) REQUIRE(digest_of(text, part) == whole);
  text[123] = static_cast<char>(text[123] ^ 1);
  CHECK(digest_of(text, 300) != whole);
}
