#include "ps/base/message.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::text_of;

namespace {

// The bytes 0, 1, 2 … in pieces of the given sizes.
struct Pieces {
  std::vector<std::byte> bytes;
  std::vector<std::span<const std::byte>> spans;

  explicit Pieces(const std::vector<std::size_t>& sizes) {
    bytes.resize(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    std::size_t at = 0;
    for (const std::size_t size : sizes) {
      spans.push_back(std::span(bytes).subspan(at, size));
      at += size;
    }
  }
};

}  // namespace

TEST_CASE("a reader gives the same bytes however they are cut") {
  for (const std::vector<std::size_t>& sizes :
       {std::vector<std::size_t>{24}, {0, 1, 0, 2, 21, 0}, {8, 8, 8}, {1, 1, 1, 1, 1, 1, 1, 1, 16}}) {
    const Pieces pieces(sizes);
    Reader reader(pieces.spans);
    CHECK(reader.remaining() == 24);
    CHECK(reader.value<std::uint32_t>() == 0x03020100u);
    Message copy;
    const auto words = reader.array<std::uint64_t>(2, copy);
    CHECK(words[0] == 0x0b0a090807060504ull);
    CHECK(words[1] == 0x131211100f0e0d0cull);
    CHECK(reinterpret_cast<std::uintptr_t>(words.data()) % 8 == 0);
    CHECK(reader.value<std::uint16_t>() == 0x1514);
    CHECK(reader.remaining() == 2);
    CHECK(text_of([&] { reader.value<std::uint32_t>(); }) ==
          "the message is cut short: 4 values of 1 bytes announced, 2 bytes left");
  }
}

TEST_CASE("an array that lies in one piece is not copied") {
  Message message(16);
  Reader reader(message.bytes());
  Message copy;
  CHECK(reinterpret_cast<const std::byte*>(reader.array<float>(4, copy).data()) == message.data());
  CHECK(copy.size() == 0);
}

TEST_CASE("counts that no memory could hold are refused before anything is reserved") {
  Message message(16);
  Reader reader(message.bytes());
  Message copy;
  CHECK(text_of([&] {
          reader.array<double>(~std::size_t{0} / 4, copy);
        }).starts_with("the message is cut short"));
  CHECK(reader.remaining() == 16);
  CHECK(reader.array<double>(0, copy).empty());
}

TEST_CASE("a writer fills what a reader reads") {
  Message message(4 + 8 + 8);
  Writer writer(message);
  writer.value(std::uint32_t{7});
  const std::vector<float> floats{1.5f, 2.5f};
  writer.array(std::span<const float>(floats));
  writer.room<float>(2)[1] = 4.0f;
  Reader reader(message.bytes());
  CHECK(reader.value<std::uint32_t>() == 7);
  CHECK(reader.value<float>() == 1.5f);
  CHECK(reader.value<float>() == 2.5f);
  reader.value<float>();
  CHECK(reader.value<float>() == 4.0f);
}
