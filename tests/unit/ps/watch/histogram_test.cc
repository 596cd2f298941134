#include "ps/watch/histogram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

using fleetrun::ps::Histogram;
using fleetrun::ps::HistogramCounts;

TEST_CASE("an empty histogram has no quantiles") {
  const HistogramCounts counts = Histogram().read();
  CHECK(counts.count() == 0);
  CHECK(counts.quantile(0.99) == 0);
}

TEST_CASE("a quantile is never below the true one and at most 1/32 above it") {
  std::mt19937_64 random(7);
  Histogram histogram;
  std::vector<std::uint64_t> values;
  std::uint64_t sum = 0;
  for (int i = 0; i < 20000; ++i) {
    values.push_back(random() >> (24 + random() % 40));
    sum += values.back();
    histogram.add(values.back());
  }
  std::sort(values.begin(), values.end());
  const HistogramCounts counts = histogram.read();
  CHECK(counts.count() == values.size());
  CHECK(counts.sum == sum);
  CHECK(counts.highest == values.back());
  for (const double q : {0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size())));
    const std::uint64_t exact = values[std::max<std::size_t>(rank, 1) - 1];
    CAPTURE(q);
    CHECK(counts.quantile(q) >= exact);
    CHECK(counts.quantile(q) <= exact + exact / 32 + 1);
  }
}

TEST_CASE("values at the edges of buckets, and beyond the last, are counted once") {
  Histogram histogram;
  const std::uint64_t values[] = {0, 1, 31, 32, 63, 64, 65, (std::uint64_t{1} << 40) - 1, ~std::uint64_t{0}};
  for (const std::uint64_t value : values) histogram.add(value);
  const HistogramCounts counts = histogram.read();
  CHECK(counts.count() == std::size(values));
  CHECK(std::is_sorted(counts.buckets.begin(), counts.buckets.end()));
  CHECK(counts.buckets.back().second == 2);
  CHECK(counts.highest == ~std::uint64_t{0});
}

TEST_CASE("additions of many threads are all counted") {
  Histogram histogram;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&histogram, t] {
      for (int i = 0; i < 10000; ++i) histogram.add(static_cast<std::uint64_t>(100 * t + i % 100));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(histogram.read().count() == 40000);
}
