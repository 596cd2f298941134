#include "collective/store/memory_store.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "runtime/base/error.h"

namespace fleetrun::collective {
namespace {

TEST_CASE("what one thread sets another one gets, also when it waits already") {
  MemoryStore store;
  std::string got;
  std::thread waiting([&] { got = store.wait("a/b", Store::Clock::now() + std::chrono::minutes(1)); });
  store.set("a/b", "value");
  waiting.join();
  CHECK(got == "value");
  CHECK(store.wait("a/b", Store::Clock::now()) == "value");
}

TEST_CASE("a name is set once") {
  MemoryStore store;
  store.set("a", "1");
  store.set("a", "1");
  CHECK_THROWS_WITH_AS(store.set("a", "2"), "the store's a is 1 already, not 2", Error);
}

TEST_CASE("a name that nobody sets is an error that names it") {
  MemoryStore store;
  CHECK_THROWS_WITH_AS(store.wait("a", Store::Clock::now()), "nobody has set the store's a", Error);
}

TEST_CASE("counters begin at 0") {
  MemoryStore store;
  CHECK(store.add("n", 2) == 2);
  CHECK(store.add("n", -3) == -1);
  CHECK(store.add("m", 0) == 0);
}

}  // namespace
}  // namespace fleetrun::collective
