#include "runtime/trainer/event_file.h"

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/engine/tensor.h"
#include "runtime/trainer/epoch_fetches.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::runtime;

namespace {

std::vector<nlohmann::json> events_in(const std::string& path) {
  std::ifstream file(path);
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(file, line);) events.push_back(nlohmann::json::parse(line));
  return events;
}

}  // namespace

TEST_CASE("an event is a line of JSON, and what is no number is null") {
  CHECK(event_line({200, 100, 1000, {{"loss", 0.5}, {"a \"b\"", std::nan("")}}}, 1763791111.1234) ==
        "{\"time\": 1763791111.123, \"batch\": 200, \"batches\": 100, \"examples\": 1000, \"values\": "
        "{\"loss\": 0.5, "
        "\"a \\\"b\\\"\": null}}\n");
}

TEST_CASE("a pass tells means over the batches since the last event, at its end too; later files go on") {
  const tests::TempDir dir;
  engine::Tensor loss, rows;
  loss.resize(engine::DataType::float32, {1});
  rows.resize(engine::DataType::float32, {2});
  const auto tensor = [&](const std::string& name) -> const engine::Tensor& {
    return name == "rows" ? rows : loss;
  };
  for (int pass = 0; pass < 2; ++pass) {
    const EpochOptions options{.fetch = {"x", "rows"},
                               .fetch_info = {"loss", "rows"},
                               .print_period = 2,
                               .events = std::make_shared<EventFile>(dir.file("events"), 3)};
    EpochFetches first(options, true, 0), second(options, false, 0);
    const float losses[] = {1.0F, 4.0F, 7.0F};
    const std::size_t examples[] = {10, 20, 5};
    for (int i = 0; i < 3; ++i) {
      loss.values<float>()[0] = losses[i];
      first.account(examples[i], tensor);
      second.account(100, tensor);
    }
    first.end();
    first.end();
    second.end();
  }
  const auto events = events_in(dir.file("events/trainer-3.jsonl"));
  REQUIRE(events.size() == 4);
  CHECK(events[0].at("batch") == 2);
  CHECK(events[0].at("batches") == 2);
  CHECK(events[0].at("examples") == 30);
  CHECK(events[0].at("values") == nlohmann::json({{"loss", 3.0}}));
  CHECK(events[0].at("time").get<double>() > 1.7e9);
  CHECK(events[1].at("batch") == 3);
  CHECK(events[1].at("batches") == 1);
  CHECK(events[1].at("values").at("loss") == 7.0);
  CHECK(events[3].at("batch") == 3);
}

TEST_CASE("events that cannot be written say where") {
  const tests::TempDir dir;
  const std::string path = dir.write("file", "");
  try {
    const EventFile events(path, 0);
    FAIL("there is no such folder");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "the events could not be written to " + path + "/trainer-0.jsonl: Not a directory");
    CHECK(error.hint() == "let FLEETRUN_EVENTS name a folder that is there, with space left");
  }
}
