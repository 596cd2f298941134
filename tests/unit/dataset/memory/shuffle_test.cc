#include "dataset/memory/shuffle.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace fleetrun::dataset {
namespace {

std::vector<std::uint32_t> shuffled(std::size_t size, std::uint64_t seed, std::size_t threads) {
  std::vector<std::uint32_t> values(size);
  std::iota(values.begin(), values.end(), 0U);
  shuffle(values, seed, threads);
  return values;
}

TEST_CASE("a shuffle is a permutation that the seed decides, not the threads") {
  for (const std::size_t size : {0U, 1U, 1000U, 700'000U}) {
    CAPTURE(size);
    const std::vector<std::uint32_t> once = shuffled(size, 5, 1);
    CHECK(shuffled(size, 5, 3) == once);
    if (size > 1) CHECK(shuffled(size, 6, 1) != once);
    std::vector<std::uint32_t> sorted = once;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < size; ++i)
      if (sorted[i] != i) FAIL("not a permutation");
  }
}

TEST_CASE("every order of three is as frequent as any other") {
  std::map<std::vector<std::uint32_t>, int> seen;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) ++seen[shuffled(3, seed, 1)];
  CHECK(seen.size() == 6);
  for (const auto& [order, count] : seen) {
    CHECK(count > 850);
    CHECK(count < 1150);
  }
}

TEST_CASE("a large shuffle leaves no value near its place more often than chance does") {
  const std::vector<std::uint32_t> order = shuffled(1'000'000, 9, 2);
  std::size_t same_tenth = 0;
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    same_tenth += order[i] / 100'000 == i / 100'000;
    sum += static_cast<double>(order[i]) * static_cast<double>(i);
  }
  CHECK(same_tenth > 99'000);
  CHECK(same_tenth < 101'000);
  CHECK(sum / 1e18 == doctest::Approx(0.25).epsilon(0.002));  // no correlation
}

TEST_CASE("XXH64 gives the published values") {
  CHECK(xxh64("") == 0xEF46DB3751D8E999ULL);
  CHECK(xxh64("a") == 0xD24EC4F1A98C6E5BULL);
  CHECK(xxh64("abc") == 0x44BC2CF5AD770999ULL);
  CHECK(xxh64("abcdefghijklmnopqrstuvwxyz0123456789") == 0x64F23ECF1609B766ULL);
}

}  // namespace
}  // namespace fleetrun::dataset
