#include "ps/durable/gate_hold.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using namespace std::chrono_literals;
using fleetrun::tests::error_of;

TEST_CASE("a gate is frozen until the cut has begun, or until who froze it is gone") {
  Gate gate;
  {
    GateHold hold(gate, 1h);
    CHECK(gate.is_frozen());
    hold.settle({}, 1s);
    CHECK(hold.cut([&] { return gate.is_frozen(); }));
    CHECK(!gate.is_frozen());
    CHECK(error_of([&] { hold.settle({}, 1s); }).kind() == fleetrun::ErrorKind::timeout);
  }
  {
    const GateHold hold(gate, 1h);
    CHECK(gate.is_frozen());
  }
  CHECK(!gate.is_frozen());
}

TEST_CASE("a gate that is held too long opens by itself, and no cut is made then") {
  Gate gate;
  GateHold hold(gate, 0ms);
  std::ignore = gate.freeze();  // returns once the other has let go
  gate.open();
  const fleetrun::Error error = error_of([&] { hold.cut([] { return 1; }); });
  CHECK(error.kind() == fleetrun::ErrorKind::timeout);
  CHECK(std::string(error.what()) == "training went on before the save had begun: it took too long");
  CHECK(error.hint() == "save again; where it happens again, see why a server answers late");
}
