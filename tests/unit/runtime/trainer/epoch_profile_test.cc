#include "runtime/trainer/epoch_profile.h"

#include <fstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::runtime;

TEST_CASE("what takes the most bounds the pass, and each bound has its advice") {
  CHECK(bound_of({0.0, 0.0, 0.0, 0.0}).empty());
  CHECK(bound_of({1.0, 0.5, 7.5, 1.0}) ==
        "bound by compute: read 10 %, pull 5 %, compute 75 %, push 10 % of the threads' time; more threads "
        "or trainers make "
        "it faster while cores are free");
  CHECK(bound_of({6.0, 1.0, 2.0, 1.0}).find("bound by read:") == 0);
  CHECK(bound_of({6.0, 1.0, 2.0, 1.0}).find("load_into_memory") != std::string::npos);
  CHECK(bound_of({1.0, 6.0, 2.0, 1.0}).find("bound by pull:") == 0);
  CHECK(bound_of({1.0, 1.0, 2.0, 6.0}).find("bound by push:") == 0);
}

TEST_CASE("operators are a table, the longest first") {
  CHECK(table_of({{"relu", {10, 0.001}}, {"linear_grad", {20, 0.003}}}) ==
        "operator          calls  milliseconds   share\n"
        "linear_grad          20         3.000  75.0 %\n"
        "relu                 10         1.000  25.0 %");
}

TEST_CASE("a pass that is trained collectively has other stages") {
  CHECK(bound_of({1.0, 0.0, 3.0, 0.0, 4.0}) ==
        "bound by exchange: read 13 %, compute 38 %, exchange 50 % of the threads' time; larger batches, "
        "float16 transfers (fp16_allreduce) or equally fast trainers make it faster");
}

TEST_CASE("stages and operators are counted, and drawn where there is a timeline") {
  const engine::Operator relu = {.type = "relu", .inputs = {}, .outputs = {}, .attributes = {}};
  EpochProfile profile(true, {});
  CHECK(profile.timed(Stage::read, [] { return 7; }) == 7);
  profile.ran(relu, 0.25);
  profile.ran(relu, 0.5);
  CHECK(profile.operators().at("relu").calls == 2);
  CHECK(profile.operators().at("relu").seconds == 0.75);
  CHECK(profile.stages()[0] > 0.0);
  CHECK(profile.stages()[2] == 0.0);
  CHECK(profile.wants_operators());
  CHECK(!EpochProfile(false, {}).wants_operators());
  const tests::TempDir folder;
  const auto timeline = Timeline::create(folder.file(""), "t", "trainer 0");
  {
    EpochProfile drawn(false, Track(timeline, "thread 0"));
    CHECK(drawn.wants_operators());
    drawn.timed(Stage::compute, [&] { drawn.ran(relu, 0.001); });
    CHECK(drawn.operators().empty());
  }
  timeline->close();
  std::ifstream file(timeline->path());
  const auto events = nlohmann::json::parse(file).at("traceEvents");
  REQUIRE(events.size() == 4);
  CHECK(events[2].at("name") == "relu");
  CHECK(events[2].at("cat") == "operator");
  CHECK(events[2].at("dur") == 1000.0);
  CHECK(events[3].at("name") == "compute");
  CHECK(events[3].at("cat") == "stage");
}

TEST_CASE("a stage that throws has ended too") {
  EpochProfile profile(false, {});
  CHECK_THROWS_AS(profile.timed(Stage::pull, [] { throw Error(ErrorKind::network, "gone"); }), Error);
  CHECK(profile.stages()[1] > 0.0);
}
