#include "collective/cpu/copy.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace fleetrun::collective {
namespace {

TEST_CASE("both copies move all bytes and no others, from and to any address") {
  std::vector<std::byte> from(5000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 % 251);
  for (const auto function : {&copy_bytes, &copy_past_caches}) {
    for (const std::size_t shift : {0, 1, 15, 16, 63}) {
      for (const std::size_t bytes : {0, 1, 63, 64, 65, 128, 1000, 4096}) {
        std::vector<std::byte> to(5000, std::byte{0xee});
        function(to.data() + shift, from.data() + 3, bytes);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < to.size(); ++i) {
          const bool inside = i >= shift && i < shift + bytes;
          wrong += to[i] == (inside ? from[3 + i - shift] : std::byte{0xee}) ? 0 : 1;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("nothing to copy needs no buffers") {
  copy_bytes(nullptr, nullptr, 0);
  copy_past_caches(nullptr, nullptr, 0);
  std::byte one{1};
  copy_bytes(&one, &one, 1);
  CHECK(one == std::byte{1});
}

}  // namespace
}  // namespace fleetrun::collective
