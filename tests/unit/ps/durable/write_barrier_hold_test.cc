#include "ps/durable/write_barrier_hold.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using namespace std::chrono_literals;
using fleetrun::tests::error_of;

TEST_CASE("a write barrier is frozen until the cut has begun, or until who froze it is gone") {
  WriteBarrier write_barrier;
  {
    WriteBarrierHold hold(write_barrier, 1h);
    CHECK(write_barrier.is_frozen());
    hold.settle({}, 1s);
    CHECK(hold.cut([&] { return write_barrier.is_frozen(); }));
    CHECK(!write_barrier.is_frozen());
    CHECK(error_of([&] { hold.settle({}, 1s); }).kind() == fleetrun::ErrorKind::timeout);
  }
  {
    const WriteBarrierHold hold(write_barrier, 1h);
    CHECK(write_barrier.is_frozen());
  }
  CHECK(!write_barrier.is_frozen());
}

TEST_CASE("a write barrier that is held too long opens by itself, and no cut is made then") {
  WriteBarrier write_barrier;
  WriteBarrierHold hold(write_barrier, 0ms);
  std::ignore = write_barrier.freeze();  // returns once the other has let go
  write_barrier.open();
  const fleetrun::Error error = error_of([&] { hold.cut([] { return 1; }); });
  CHECK(error.kind() == fleetrun::ErrorKind::timeout);
  CHECK(std::string(error.what()) == "training went on before the save had begun: it took too long");
  CHECK(error.hint() == "save again; where it happens again, see why a server answers late");
}
