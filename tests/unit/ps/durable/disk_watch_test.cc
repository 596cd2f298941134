#include "ps/durable/disk_watch.h"

#include <doctest/doctest.h>

#include <future>
#include <optional>

using namespace fleetrun::ps;
using namespace std::chrono_literals;

TEST_CASE("a disk that does not do what it is asked for is told of once, and that it has done it") {
  std::promise<std::chrono::milliseconds> slow, over;
  int told = 0;
  {
    DiskWatch watch(20ms, [&](std::chrono::milliseconds waited, bool is_over) {
      ++told;
      (is_over ? over : slow).set_value(waited);
    });
    { const DiskWatch::Asking quick(&watch); }
    std::optional<DiskWatch::Asking> asking(std::in_place, &watch);
    { const DiskWatch::Asking second(&watch); }  // it does not end the first
    auto is_slow = slow.get_future();
    REQUIRE(is_slow.wait_for(30s) == std::future_status::ready);
    CHECK(is_slow.get() >= 20ms);
    asking.reset();
    auto is_over = over.get_future();
    REQUIRE(is_over.wait_for(30s) == std::future_status::ready);
    CHECK(is_over.get() >= 20ms);
  }
  CHECK(told == 2);
  const DiskWatch::Asking unwatched(nullptr);
}
