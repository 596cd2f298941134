#include "runtime/pass_profile.h"

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

TEST_CASE("stages and operators are counted, events only for a timeline") {
  PassProfile profile(PassProfile::Clock::now(), {.operators = true, .trace = false});
  CHECK(profile.timed(Stage::read, [] { return 7; }) == 7);
  profile.ran({.type = "relu", .inputs = {}, .outputs = {}, .attributes = {}}, 0.25);
  profile.ran({.type = "relu", .inputs = {}, .outputs = {}, .attributes = {}}, 0.5);
  CHECK(profile.operators().at("relu").calls == 2);
  CHECK(profile.operators().at("relu").seconds == 0.75);
  CHECK(profile.stages()[0] >= 0.0);
  CHECK(profile.stages()[2] == 0.0);
  CHECK(profile.events().empty());
  CHECK(profile.wants_operators());
  CHECK(!PassProfile(PassProfile::Clock::now(), {}).wants_operators());
}

TEST_CASE("a stage that throws has ended too") {
  PassProfile profile(PassProfile::Clock::now(), {.operators = false, .trace = true});
  CHECK_THROWS_AS(profile.timed(Stage::pull, [] { throw Error(ErrorKind::network, "gone"); }), Error);
  REQUIRE(profile.events().size() == 1);
  CHECK(profile.events()[0].name == "pull");
}

TEST_CASE("a timeline is Chrome's JSON: complete events with microseconds, process and thread") {
  const tests::TempDir folder;
  const std::string path = (folder.path() / "trace.json").string();
  write_trace(path, 3,
              {{{"read", "stage", 0, 12}, {"linear_grad", "operator", 12, 30}}, {{"push", "stage", 40, 2}}});
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  const auto& events = json.at("traceEvents");
  REQUIRE(events.size() == 4);
  CHECK(events[0].at("ph") == "M");
  CHECK(events[0].at("args").at("name") == "trainer 3");
  CHECK(events[2] == nlohmann::json({{"name", "linear_grad"},
                                     {"cat", "operator"},
                                     {"ph", "X"},
                                     {"ts", 12},
                                     {"dur", 30},
                                     {"pid", 3},
                                     {"tid", 0}}));
  CHECK(events[3].at("tid") == 1);
}

TEST_CASE("a timeline that cannot be written says where") {
  const tests::TempDir folder;
  const std::string path = (folder.path() / "none" / "trace.json").string();
  try {
    write_trace(path, 0, {});
    FAIL("there is no such folder");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("the timeline could not be written to " + path) !=
          std::string::npos);
    CHECK(error.hint() == "name a folder that is there, with space left");
  }
}
