#include "launcher/host/run_check.h"

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

Identity trainer(int rank) {
  Identity id;
  id.mode = Mode::ps;
  id.rank = rank;
  id.servers = {{"127.0.0.1", 7000}};
  id.trainers = {{"127.0.0.1", 8000}, {"127.0.0.1", 8001}};
  id.pod_name = "abcdef";
  return id;
}

}  // namespace

TEST_CASE("processes of the same job know each other by what they tell") {
  CHECK(greeting(trainer(1)) == "default abcdef 127.0.0.1:7000 127.0.0.1:8000,127.0.0.1:8001 trainer 1");
  CHECK(mismatch(greeting(trainer(1)), trainer(0), Role::trainer, 1).empty());
  Identity server = trainer(0);
  server.role = Role::server;
  CHECK(mismatch(greeting(server), trainer(0), Role::server, 0).empty());
}

TEST_CASE("somebody else at the endpoint is told apart") {
  CHECK(mismatch(greeting(trainer(0)), trainer(0), Role::trainer, 1) == "says that it is trainer 0");
  Identity other = trainer(1);
  other.trainers = {other.trainers.front()};
  CHECK(mismatch(greeting(other), trainer(0), Role::trainer, 1).starts_with("belongs to another job"));
  CHECK(mismatch("SSH-2.0", trainer(0), Role::trainer, 1) ==
        "belongs to another job, or knows other processes: SSH-2.0");
}
