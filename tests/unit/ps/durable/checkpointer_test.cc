#include "ps/durable/checkpointer.h"

#include <doctest/doctest.h>

#include <future>

using fleetrun::ps::Checkpointer;

TEST_CASE("checkpoints are made when it is time, and when somebody asks") {
  SUBCASE("time") {
    std::promise<void> made;
    int count = 0;
    const Checkpointer checkpointer(std::chrono::milliseconds(1), [&] {
      if (++count == 3) made.set_value();
    });
    made.get_future().get();
  }
  SUBCASE("asked") {
    std::promise<void> made;
    Checkpointer checkpointer(std::chrono::milliseconds(0), [&] { made.set_value(); });
    checkpointer.wake();
    made.get_future().get();
  }
  SUBCASE("neither") {
    const Checkpointer checkpointer(std::chrono::milliseconds(0), [] { FAIL("nobody asked"); });
  }
}
