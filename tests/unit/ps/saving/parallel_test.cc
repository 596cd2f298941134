#include "ps/saving/parallel.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>

#include "tests/support/ps_tables.h"

using fleetrun::ps::work_in_parallel;

TEST_CASE("everything is worked on once") {
  std::array<std::atomic<int>, 100> worked{};
  work_in_parallel(worked.size(), [&](std::size_t i) { ++worked[i]; });
  for (const auto& times : worked) CHECK(times == 1);
  work_in_parallel(0, [](std::size_t) { FAIL("there is nothing to do"); });
}

TEST_CASE("an error stops the work and is thrown") {
  std::atomic<int> worked = 0;
  CHECK(fleetrun::tests::text_of([&] {
          work_in_parallel(1000000, [&](std::size_t) {
            ++worked;
            throw fleetrun::Error(fleetrun::ErrorKind::host, "no");
          });
        }) == "no");
  CHECK(worked < 1000000);
}
