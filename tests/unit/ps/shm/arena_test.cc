#include "ps/shm/arena.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

using fleetrun::ps::ShmArena;

TEST_CASE("shm arena: the lowest piece that fits, in cache lines") {
  ShmArena arena(1024);
  CHECK(arena.allocate(1) == 0);
  CHECK(arena.allocate(64) == 64);
  CHECK(arena.allocate(65) == 128);
  CHECK(arena.used() == 256);
  CHECK(arena.free(64));
  CHECK(arena.allocate(0) == 64);
  CHECK(arena.allocate(768) == 256);
  CHECK_FALSE(arena.allocate(1));
  CHECK(arena.touched() == 1024);
}

TEST_CASE("shm arena: what is too large for it, and what is not its own") {
  ShmArena arena(128);
  CHECK_FALSE(arena.allocate(129));
  CHECK_FALSE(arena.allocate(~std::uint64_t{0}));
  CHECK(arena.allocate(128) == 0);
  CHECK_FALSE(arena.free(64));
  CHECK_FALSE(arena.free(128));
  CHECK(arena.free(0));
  CHECK_FALSE(arena.free(0));
  CHECK(arena.is_empty());
}

TEST_CASE("shm arena: pieces never overlap, whatever the order") {
  ShmArena arena(1 << 16);
  std::mt19937 random(7);
  std::map<std::uint64_t, std::uint64_t> pieces;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 2 == 0) {
      const std::uint64_t size = 1 + random() % 5000;
      const auto at = arena.allocate(size);
      if (!at) continue;
      REQUIRE(*at + size <= 1 << 16);
      const auto after = pieces.lower_bound(*at);
      REQUIRE((after == pieces.end() || *at + size <= after->first));
      REQUIRE((after == pieces.begin() || std::prev(after)->first + std::prev(after)->second <= *at));
      pieces.emplace(*at, size);
    } else if (!pieces.empty()) {
      const auto piece = std::next(pieces.begin(), static_cast<long>(random() % pieces.size()));
      REQUIRE(arena.free(piece->first));
      pieces.erase(piece);
    }
  }
  for (const auto& [offset, size] : pieces) CHECK(arena.free(offset));
  CHECK(arena.used() == 0);
}
