#include "runtime/base/base64.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>

using namespace fleetrun;

TEST_CASE("base64 is that of RFC 4648, and every byte comes back") {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    CHECK(base64(bytes) == text);
    CHECK(from_base64(text) == bytes);
  }
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  for (std::size_t size = 0; size <= all.size(); ++size)
    CHECK(from_base64(base64(all.substr(0, size))) == all.substr(0, size));
  for (const char* bad : {"Z", "Zg", "Zg=", "Z===", "====", "Zm9*", "Zg==Zm9v", "Zm 9", "Zm9v\n"})
    CHECK(from_base64(bad) == std::nullopt);
}
