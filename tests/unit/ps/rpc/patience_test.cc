#include "ps/rpc/patience.h"

#include <doctest/doctest.h>

#include <future>
#include <vector>

using fleetrun::ps::Patience;
using namespace std::chrono_literals;

TEST_CASE("things are done in the order in which they are due") {
  std::vector<int> done;
  std::promise<void> last;
  Patience patience;
  patience.after(20ms, [&] {
    done.push_back(2);
    last.set_value();
  });
  patience.after(0ms, [&] { done.push_back(1); });
  last.get_future().get();
  CHECK(done == std::vector<int>{1, 2});
}

TEST_CASE("what is not due yet is dropped at the end") {
  Patience patience;
  patience.after(1h, [] { FAIL("not due"); });
}
