#include "ps/base/key_partition.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;

TEST_CASE("keys spread evenly over servers, whatever their stride") {
  for (const std::uint32_t servers : {1u, 2u, 3u, 7u, 64u}) {
    for (const std::uint64_t stride : {1ull, 2ull, 1000ull, 1ull << 32, 0x9e3779b97f4a7c15ull}) {
      std::vector<int> held(servers);
      constexpr int kKeys = 100000;
      for (std::uint64_t i = 0; i < kKeys; ++i) ++held.at(server_of(i * stride, servers));
      const auto [min, max] = std::minmax_element(held.begin(), held.end());
      const double share = static_cast<double>(kKeys) / servers;
      CHECK(*min > share * 0.85);
      CHECK(*max < share * 1.15);
    }
  }
}

TEST_CASE("where a key lives does not change between versions: saved tables depend on it") {
  CHECK(server_of(0, 3) == 2);
  CHECK(server_of(1, 3) == 1);
  CHECK(server_of(2, 3) == 1);
  CHECK(server_of(~0ull, 1000) == 893);
  CHECK(server_of(12345, 1000) == 133);
}

TEST_CASE("the blocks of a dense table cover it once, in order, with sizes that differ by one at most") {
  for (const std::uint64_t width : {0ull, 1ull, 5ull, 12ull, 13ull, 1000003ull}) {
    for (const std::uint32_t servers : {1u, 2u, 5u, 12u}) {
      std::uint64_t end = 0;
      for (std::uint32_t rank = 0; rank < servers; ++rank) {
        const Block block = dense_block(dense_table(0, "t", width), servers, rank);
        CHECK(block.begin == end);
        CHECK(block.size() >= width / servers);
        CHECK(block.size() <= width / servers + 1);
        end = block.end;
      }
      CHECK(end == width);
    }
  }
}

TEST_CASE("a table smaller than its smallest block lies on one server, and such tables spread over all") {
  std::vector<int> tables(4, 0);
  for (std::uint32_t id = 0; id < 100; ++id) {
    TableConfig config = dense_table(id, "t", 100);
    config.min_block = 81920;
    std::uint64_t floats = 0;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const Block block = dense_block(config, 4, rank);
      floats += block.size();
      CHECK((block.size() == 0 || block.size() == 100));
      tables[rank] += block.size() > 0;
    }
    CHECK(floats == 100);
  }
  for (const int count : tables) CHECK(count > 10);
}

TEST_CASE("a larger table is split into no block below the smallest") {
  for (const std::uint32_t id : {0u, 1u, 2u, 3u, 4u}) {
    for (const std::uint64_t width : {10ull, 19ull, 20ull, 35ull, 40ull, 49ull, 1000ull}) {
      TableConfig config = dense_table(id, "t", width);
      config.min_block = 10;
      std::vector<Block> blocks;
      for (std::uint32_t rank = 0; rank < 4; ++rank) blocks.push_back(dense_block(config, 4, rank));
      std::erase_if(blocks, [](const Block& block) { return block.size() == 0; });
      CHECK(blocks.size() == std::min<std::uint64_t>(4, width / 10));
      std::ranges::sort(blocks, {}, &Block::begin);
      std::uint64_t end = 0;
      for (const Block& block : blocks) {
        CHECK(block.begin == end);
        CHECK(block.size() >= 10);
        end = block.end;
      }
      CHECK(end == width);
    }
  }
}
