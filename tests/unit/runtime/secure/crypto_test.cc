#include "runtime/secure/crypto.h"

#include <doctest/doctest.h>

using namespace fleetrun;

namespace {

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    text += "0123456789abcdef"[byte & 0xF];
  }
  return text;
}

std::string_view view(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

TEST_CASE("HMAC-SHA256 is that of RFC 4231") {
  struct Row {
    std::string key, data, digest;
  };
  const Row rows[] = {
      {std::string(20, '\x0b'), "Hi There",
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {"", "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
  };
  for (const Row& row : rows) {
    CHECK(hexadecimal(hmac_sha256(row.key, row.data)) == row.digest);
    KeyedHash hash(row.key);
    const std::size_t middle = row.data.size() / 2;
    for (int again = 0; again < 2; ++again)
      CHECK(hexadecimal(view(hash.of({row.data.substr(0, middle), row.data.substr(middle)}))) == row.digest);
  }
}

TEST_CASE("texts are equal in constant time when every byte is") {
  CHECK(equal_in_constant_time("", ""));
  CHECK(equal_in_constant_time("abc", "abc"));
  CHECK_FALSE(equal_in_constant_time("abc", "abd"));
  CHECK_FALSE(equal_in_constant_time("abc", "bbc"));
  CHECK_FALSE(equal_in_constant_time("abc", "ab"));
  CHECK_FALSE(equal_in_constant_time(std::string("a\0b", 3), std::string("a\0c", 3)));
}

TEST_CASE("what is wiped holds nothing") {
  std::string text = "a secret that is longer than a short string";
  const char* bytes = text.data();
  wipe(text);
  CHECK(text.empty());
  CHECK(std::string_view(bytes, 8) == std::string_view("\0\0\0\0\0\0\0\0", 8));
}
