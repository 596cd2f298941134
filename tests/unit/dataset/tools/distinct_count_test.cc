#include "dataset/tools/distinct_count.h"

#include <doctest/doctest.h>

#include <cmath>

using fleetrun::dataset::DistinctCount;

TEST_CASE("up to 4096 values are counted, however often each is there") {
  DistinctCount count;
  CHECK(count.value() == 0);
  for (int round = 0; round < 3; ++round)
    for (std::uint64_t value = 0; value < 4096; ++value) count.add(value * 1000003);
  CHECK(count.is_exact());
  CHECK(count.value() == 4096);
  count.add(1);
  CHECK_FALSE(count.is_exact());
}

TEST_CASE("more are estimated within 3 %, whatever their numbers are") {
  for (const std::uint64_t step :
       {std::uint64_t{1}, std::uint64_t{1} << 40, std::uint64_t{0x9e3779b97f4a7c15}}) {
    DistinctCount count;
    std::uint64_t added = 0;
    for (const std::uint64_t wanted : {5000u, 20000u, 50000u, 200000u, 1000000u}) {
      for (; added < wanted; ++added) count.add(added * step);
      INFO(wanted << " values, " << step << " apart: " << count.value());
      CHECK(std::abs(static_cast<double>(count.value()) / static_cast<double>(wanted) - 1) < 0.03);
    }
  }
}

TEST_CASE("counts that are added count as if all had been added to one, in either order") {
  for (const std::uint64_t size : {100u, 3000u, 30000u}) {
    DistinctCount first, second, all;
    for (std::uint64_t value = 0; value < size; ++value) {
      first.add(value);
      second.add(size / 2 + value);
      all.add(value);
      all.add(size / 2 + value);
    }
    DistinctCount backward = second, small;
    small.add(0);
    backward.add(first);
    first.add(second);
    first.add(small);
    CHECK(first.value() == all.value());
    CHECK(backward.value() == all.value());
    CHECK(first.is_exact() == all.is_exact());
    small.add(all);
    CHECK(small.value() == all.value());
  }
}
