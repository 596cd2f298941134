#include "ps/durable/durable_settings.h"

#include <doctest/doctest.h>

#include "runtime/base/environ.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::Environ;
using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::tests::error_of;
using namespace std::chrono_literals;

TEST_CASE("nothing is kept, and nobody waited for, unless the environment says so") {
  CHECK(durability_of(Environ{}).directory.empty());
  CHECK(durability_of(Environ{}).sync == LogSync::process);
  CHECK(recover_within_of(Environ{}) == 0ms);
}

TEST_CASE("what the environment says") {
  const Environ environ{{"FLEETRUN_PS_CHECKPOINT", "/there"},
                        {"FLEETRUN_PS_CHECKPOINT_INTERVAL", "5"},
                        {"FLEETRUN_PS_LOG_SYNC", "power"},
                        {"FLEETRUN_PS_CHECKPOINT_FOUND", "resume"},
                        {"FLEETRUN_PS_RUN", "r1"},
                        {"FLEETRUN_PS_SERVED", "r0"}};
  const Durability durability = durability_of(environ);
  CHECK(durability.directory == "/there");
  CHECK(durability.interval == 5s);
  CHECK(durability.sync == LogSync::power);
  CHECK(durability.run == "r1");
  CHECK(durability.served == "r0");
  CHECK(durability.found == FoundCheckpoint::resume);
  CHECK(durability_of(Environ{{"FLEETRUN_PS_CHECKPOINT_FOUND", "replace"}}).found ==
        FoundCheckpoint::replace);
  CHECK(durability_of(Environ{{"FLEETRUN_PS_CHECKPOINT_FOUND", "require"}}).found ==
        FoundCheckpoint::require);
  CHECK(durability_of(Environ{}).found == FoundCheckpoint::refuse);
  CHECK(recover_within_of(environ) == 120s);
  CHECK(recover_within_of(Environ{{"FLEETRUN_PS_RECOVER", "7"}}) == 7s);
}

TEST_CASE("values that are none are refused") {
  for (const char* bad : {"-1", "1.5", "soon", "99999999999999999999", "604801"}) {
    const Error error = error_of([&] { recover_within_of(Environ{{"FLEETRUN_PS_RECOVER", bad}}); });
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()) ==
          std::string("FLEETRUN_PS_RECOVER=") + bad + " is not a number of seconds");
    CHECK(error.hint() == "write whole seconds, up to a week: FLEETRUN_PS_RECOVER=0");
  }
  const Error found = error_of([] { durability_of(Environ{{"FLEETRUN_PS_CHECKPOINT_FOUND", "keep"}}); });
  CHECK(std::string(found.what()) == "FLEETRUN_PS_CHECKPOINT_FOUND=keep is nothing to do with a checkpoint");
  const Error error = error_of([] { durability_of(Environ{{"FLEETRUN_PS_LOG_SYNC", "maybe"}}); });
  CHECK(std::string(error.what()) == "FLEETRUN_PS_LOG_SYNC=maybe is not a way to keep the log");
  CHECK(error.hint() == "set it to process, or to power to survive the end of the host too");
}
