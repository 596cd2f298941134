#include "ps/base/server_channel.h"

#include <doctest/doctest.h>

#include <thread>

using fleetrun::ps::Endings;

TEST_CASE("endings wait for all calls, or for the first that failed") {
  Endings all;
  std::thread ending([&] {
    all.ended(false);
    all.ended(false);
  });
  all.wait(2);
  ending.join();
  Endings failed;
  failed.ended(true);
  failed.wait(5);
}

TEST_CASE("waiting for more ends at the deadline") {
  Endings endings;
  const auto now = std::chrono::steady_clock::now();
  CHECK(endings.wait_for_more(0, now) == 0);
  endings.ended(false);
  CHECK(endings.wait_for_more(0, now) == 1);
}
