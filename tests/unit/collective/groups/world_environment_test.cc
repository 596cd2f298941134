#include <doctest/doctest.h>

#include "collective/groups/world.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::collective;

namespace {

Environ with(Environ environ, const std::string& name, const std::string& value) {
  environ.set(name, value);
  return environ;
}

/// The variables of trainer 1 of 3; nothing is proved, so that no file is read.
const Environ kPaddle{{"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6170,10.0.0.1:6171,10.0.0.2:6170"},
                      {"PADDLE_TRAINERS_NUM", "3"},
                      {"PADDLE_TRAINER_ID", "1"},
                      {"FLEETRUN_INSECURE", "1"}};
const Environ kTorch{{"RANK", "2"},
                     {"WORLD_SIZE", "4"},
                     {"MASTER_ADDR", "10.0.0.1"},
                     {"MASTER_PORT", "29500"},
                     {"FLEETRUN_INSECURE", "1"}};

std::string refusal(const Environ& environ) {
  try {
    world_options_from(environ);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("the first trainer's endpoint is where the store is, and each trainer's own host is its address") {
  const WorldOptions options = world_options_from(kPaddle);
  CHECK(options.rank == 1);
  CHECK(options.size == 3);
  CHECK(options.store == "10.0.0.1:6170");
  CHECK(options.address == "10.0.0.1");
  CHECK(!options.shares_port);
  CHECK(options.attempt == "attempt 0 of job default");
  CHECK(!options.access.secret);
  CHECK(world_options_from(with(kPaddle, "PADDLE_TRAINER_ID", "2")).address == "10.0.0.2");
  CHECK(world_options_from(with(kPaddle, "FLEETRUN_LISTEN", "10.0.0.9:1,10.0.0.1:6170")).shares_port);
}

TEST_CASE("torchrun's variables do where Paddle's are not set") {
  const WorldOptions options = world_options_from(kTorch);
  CHECK(options.rank == 2);
  CHECK(options.size == 4);
  CHECK(options.store == "10.0.0.1:29500");
  CHECK(options.address.empty());
  CHECK(world_options_from(with(kTorch, "MASTER_ADDR", "fd00::1")).store == "[fd00::1]:29500");
  CHECK(world_options_from({}).size == 1);
  CHECK(world_options_from({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).size == 1);
}

TEST_CASE("every start of a job has another name") {
  CHECK(world_options_from(with(kPaddle, "FLEETRUN_ATTEMPT", "2")).attempt == "attempt 2 of job default");
  CHECK(world_options_from(with(with(kPaddle, "FLEETRUN_RUN", "7f3a"), "FLEETRUN_EPOCH", "5")).attempt ==
        "epoch 5 of run 7f3a");
  CHECK(world_options_from(with(with(kTorch, "TORCHELASTIC_RUN_ID", "j"), "TORCHELASTIC_RESTART_COUNT", "1"))
            .attempt == "attempt 1 of job j");
}

TEST_CASE("the way and the times can be set") {
  const Environ set =
      with(with(with(kPaddle, "FLEETRUN_COLLECTIVE", "gloo"), "FLEETRUN_COLLECTIVE_TIMEOUT", "7"),
           "FLEETRUN_MEET_TIMEOUT", "9");
  const WorldOptions options = world_options_from(set);
  CHECK(options.transport == Transport::gloo);
  CHECK(options.call_within == std::chrono::seconds(7));
  CHECK(options.meet_within == std::chrono::seconds(9));
}

TEST_CASE(
    "the job's secret is read where FLEETRUN_SECRET_FILE or the user has it, and proves nothing elsewhere") {
  const tests::TempDir folder;
  Environ environ = with(kPaddle, "XDG_CONFIG_HOME", folder.path().string());
  environ.erase("FLEETRUN_INSECURE");
  const WorldOptions options = world_options_from(environ);
  REQUIRE(options.access.secret);
  CHECK(options.access.source == (folder.path() / "fleetrun" / "secret").string());
  CHECK(!(*options.access.secret == read_secret_file(options.access.source)));
}

TEST_CASE("variables that are missing or make no sense are named") {
  Environ no_port = kTorch;
  no_port.erase("MASTER_PORT");
  CHECK(refusal(no_port) == "MASTER_PORT is not set");
  Environ no_host = kTorch;
  no_host.erase("MASTER_ADDR");
  CHECK(refusal(no_host) == "MASTER_ADDR is not set");
  CHECK(refusal({{"RANK", "0"}}) == "WORLD_SIZE is not set");
  CHECK(refusal(with(kTorch, "RANK", "4")) == "RANK is 4 and WORLD_SIZE 4");
  CHECK(refusal(with(kTorch, "WORLD_SIZE", "x")) == "WORLD_SIZE=x is not a whole number from 1 to 1000000");
  CHECK(refusal(with(kPaddle, "FLEETRUN_COLLECTIVE", "mpi")) == "'mpi' is not a transport between ranks");
  CHECK(refusal(with(kPaddle, "FLEETRUN_MEET_TIMEOUT", "0")) ==
        "FLEETRUN_MEET_TIMEOUT=0 is not a whole number from 1 to 10000000");
}
