#include "launcher/etcd/etcd_discovery.h"

#include <doctest/doctest.h>

#include "launcher/etcd/state_writer.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

TEST_CASE("a coordinator's key says where it listens") {
  CHECK(coordinator_text({"10.0.0.1", 4711}) == R"({"coordinator":"10.0.0.1:4711","version":1})");
  CHECK(coordinator_in(coordinator_text({"::1", 7})) == Endpoint{"::1", 7});
  for (const char* text : {"", "h:1", "{}", R"({"coordinator":7})", R"({"coordinator":"h"})", "[1]"}) {
    CAPTURE(text);
    try {
      coordinator_in(text);
      FAIL("it was taken for one");
    } catch (const Error& error) {
      CHECK(error.what() == "'" + std::string(text) + "' was not written by fleetrun");
      CHECK(error.hint() == "remove the key, or choose another job id with --job_id");
    }
  }
}

TEST_CASE("the keys of a job are under its own name") {
  CHECK(job_keys("a.b").coordinator == "/fleetrun/a.b/coordinator");
  CHECK(job_keys("a.b").state == "/fleetrun/a.b/state");
}

TEST_CASE("leases are drawn anew each time, and are positive") {
  const std::int64_t one = draw_lease_id(), other = draw_lease_id();
  CHECK(one > 0);
  CHECK(other > 0);
  CHECK(one != other);
}
