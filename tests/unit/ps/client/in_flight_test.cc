#include "ps/client/in_flight.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "tests/support/ps_tables.h"

using fleetrun::ErrorKind;
using fleetrun::ps::InFlight;
using fleetrun::tests::error_of;
using std::chrono::milliseconds;

TEST_CASE("in flight: no more calls, and no more bytes, than the limits; a call that ends makes room") {
  InFlight few("server 2 at h:1", {.calls = 2, .bytes = 100, .patience = milliseconds(1)});
  InFlight::Ticket one = few.enter(60);
  const auto error = error_of([&] { few.enter(41); });
  CHECK(error.kind() == ErrorKind::timeout);
  CHECK(std::string(error.what()) ==
        "server 2 at h:1 has not answered 1 requests of 60 bytes, and no more are sent; waited 1 ms");
  {
    const InFlight::Ticket two = few.enter(40);
    CHECK(error_of([&] { few.enter(0); }).kind() == ErrorKind::timeout);
  }
  InFlight::Ticket two = few.enter(40);
  one = {};
  CHECK(error_of([&] { few.enter(61); }).kind() == ErrorKind::timeout);
  one = few.enter(60);
  two = std::move(one);
  const InFlight::Ticket three = few.enter(40);
}

TEST_CASE("in flight: what is longer than the limit goes alone; sizes that cannot be added are no hole") {
  InFlight few("server 0", {.calls = 9, .bytes = 100, .patience = milliseconds(1)});
  {
    const InFlight::Ticket large = few.enter(1000);
    CHECK(error_of([&] { few.enter(1); }).kind() == ErrorKind::timeout);
  }
  const InFlight::Ticket small = few.enter(1);
  CHECK(error_of([&] { few.enter(~std::uint64_t{0}); }).kind() == ErrorKind::timeout);
}

TEST_CASE("in flight: who waits goes on when there is room; tickets outlive what they are of") {
  auto few = std::make_unique<InFlight>("server 0", InFlight::Limits{.calls = 1, .bytes = 100});
  InFlight::Ticket first = few->enter(1);
  std::vector<InFlight::Ticket> later(3);
  std::vector<std::thread> threads;
  for (InFlight::Ticket& ticket : later) {
    threads.emplace_back([&] {
      ticket = few->enter(1);
      ticket = {};
    });
  }
  first = {};
  for (std::thread& thread : threads) thread.join();
  first = few->enter(1);
  few.reset();
}
