#include "launcher/etcd/lease_clock.h"

#include <doctest/doctest.h>

using namespace fleetrun::launcher;
using namespace std::chrono_literals;

TEST_CASE("a lease is trusted from the moment at which it was asked for, not at which the answer came") {
  LeaseClock clock(2s);
  CHECK_FALSE(clock.holds(0s));
  clock.confirm(10s);
  CHECK(clock.holds(10s));
  CHECK(clock.holds(12s - 1ns));
  CHECK_FALSE(clock.holds(12s));
}

TEST_CASE("an answer that comes late takes no trust away") {
  LeaseClock clock(2s);
  clock.confirm(11s);
  clock.confirm(10s);
  CHECK(clock.holds(12'500ms));
  clock.begin();
  CHECK_FALSE(clock.holds(11s));
}
