#include "ps/table/row_arena.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

using fleetrun::ps::RowArena;

TEST_CASE("slabs are aligned and do not overlap, also across chunks and when larger than one") {
  for (const std::size_t floats : {1000ul, 8192ul, 600000ul}) {
    const int count = floats < 10000 ? 100 : 3;
    RowArena arena(floats);
    CHECK(arena.slab_floats() >= floats);
    std::vector<float*> slabs;
    for (int i = 0; i < count; ++i) {
      slabs.push_back(arena.take_slab());
      CHECK(reinterpret_cast<std::uintptr_t>(slabs.back()) % 64 == 0);
      slabs.back()[0] = static_cast<float>(i);
      slabs.back()[floats - 1] = static_cast<float>(i);
    }
    for (int i = 0; i < count; ++i) {
      CHECK(slabs[static_cast<std::size_t>(i)][0] == static_cast<float>(i));
      CHECK(slabs[static_cast<std::size_t>(i)][floats - 1] == static_cast<float>(i));
    }
  }
}
