#include "runtime/tools/event_series.h"

#include <functional>
#include <sstream>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::trace;

namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("events go on from pass to pass; null and what is torn off are left out") {
  std::stringstream text(
      R"({"time": 1, "batch": 2, "batches": 2, "examples": 20, "values": {"loss": 3.5, "auc": null}}
{"time": 2, "batch": 3, "batches": 1, "examples": 5, "values": {"loss": 7, "auc": 0.5}}
{"time": 3, "batch": 2, "batches": 2, "examples": 20, "values": {"loss": 2}}
something else
{"time": 4, "batch": 3, "batc)");
  Curves curves;
  CHECK(add_series(text, "trainer 0", curves) == 3);
  REQUIRE(curves.size() == 2);
  REQUIRE(curves["loss"].size() == 1);
  const auto& loss = curves["loss"][0].samples;
  REQUIRE(loss.size() == 3);
  CHECK(loss[0].batches == 2);
  CHECK(loss[1].batches == 3);
  CHECK(loss[2].batches == 5);
  CHECK(loss[2].value == 2);
  REQUIRE(curves["auc"][0].samples.size() == 1);
  CHECK(curves["auc"][0].samples[0].batches == 3);
}

TEST_CASE("printed lines are read too: counts begin anew with each pass") {
  std::stringstream text(
      "hello\n"
      "time: [2022-05-18 11:27:27], batch: [100], loss[1]:[0.5], rows[2]:[1,2], auc[1]:[0.6]\n"
      "time: [2022-05-18 11:27:28], batch: [200], loss[1]:[0.4], rows[2]:[1,2], auc[1]:[nan]\n"
      "examples: 600, batches: 12, seconds: 1.000, examples/s: 600.0\n"
      "time: [2022-05-18 11:27:29], batch: [100], loss[1]:[0.3]\n"
      "time: [2022-05-18 11:27:29], batch: [x], loss[1]:[0.3]\n"
      "time: [2022-05-18 11:27:29], batch: [200], loss[1]:[0.\n");
  Curves curves;
  CHECK(add_series(text, "trainer 0", curves) == 4);
  const auto& loss = curves["loss"][0].samples;
  REQUIRE(loss.size() == 3);
  CHECK(loss[1].batches == 200);
  CHECK(loss[2].batches == 300);
  CHECK(loss[2].value == 0.3);
  CHECK(curves["auc"][0].samples.size() == 1);
  CHECK(curves.count("rows") == 0);
}

TEST_CASE("a folder is all its trainers in their order, and what has nothing is one clear error") {
  const tests::TempDir dir;
  const std::string event = R"({"batches": 2, "values": {"loss": 3.5}})";
  dir.write("trainer-10.jsonl", event);
  dir.write("trainer-9.jsonl", event);
  const std::string log = dir.write("workerlog.3", "time: [now], batch: [1], loss[1]:[2]\n");
  const std::string empty = dir.write("empty.log", "hello\n");
  const Curves curves = read_curves({dir.path().string(), log});
  const auto& all = curves.at("loss");
  REQUIRE(all.size() == 3);
  CHECK(all[0].name == "trainer 9");
  CHECK(all[1].name == "trainer 10");
  CHECK(all[2].name == "trainer 3");
  CHECK(refusal([&] { read_curves({empty}); }) == empty + " has no fetched values");
  CHECK(refusal([&] { read_curves({dir.file("nowhere")}); }) ==
        dir.file("nowhere") + " cannot be read: No such file or directory");
  const tests::TempDir bare;
  CHECK(refusal([&] { read_curves({bare.path().string()}); }) ==
        "no event file (*.jsonl) is in " + bare.path().string());
}

TEST_CASE("curves as JSON: a list of trainers for each name") {
  std::istringstream text(
      "time: [t], batch: [100], loss[1]:[0.5]\ntime: [t], batch: [200], loss[1]:[0.25]\n");
  Curves curves;
  CHECK(to_json(curves) == "{}");
  add_series(text, "trainer 0", curves);
  CHECK(to_json(curves) == R"({"loss":[{"name":"trainer 0","batches":[100.0,200.0],"values":[0.5,0.25]}]})");
}
