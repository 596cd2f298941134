#include "runtime/tools/prediction_text.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/base/error.h"
#include "tests/support/engine_program.h"

namespace fleetrun::inference {
namespace {

using tests::tensor_of;

TEST_CASE("a line for each row, spaces and tabs") {
  const auto a = tensor_of<float>(engine::DataType::float32, {2, 2}, {0.1F, 1e-7F, 3.0F, -0.0F});
  const auto b = tensor_of<std::int64_t>(engine::DataType::int64, {2}, {7, -9});
  const auto c = tensor_of<bool>(engine::DataType::boolean, {2, 1}, {true, false});
  const std::vector<Fetched> all = {{"a", &a}, {"b", &b}, {"c", &c}};
  CHECK(prediction_text(all, 2) == "0.1 1e-07\t7\t1\n3 -0\t-9\t0\n");
  CHECK(prediction_json(all, 2) ==
        "{\"a\":[0.1,1e-07],\"b\":7,\"c\":true}\n{\"a\":[3.0,-0.0],\"b\":-9,\"c\":false}\n");
}

TEST_CASE("rows of any number of values") {
  auto bag = tensor_of<double>(engine::DataType::float64, {3, 1}, {1.0, 2.5, 3.0});
  bag.offsets = {0, 0, 2, 3};
  const std::vector<Fetched> all = {{"bag", &bag}};
  CHECK(prediction_text(all, 3) == "\n1 2.5\n3\n");
  CHECK(prediction_json(all, 3) == "{\"bag\":[]}\n{\"bag\":[1.0,2.5]}\n{\"bag\":[3.0]}\n");
}

TEST_CASE("numbers that JSON does not know are strings") {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto a = tensor_of<float>(engine::DataType::float32, {3},
                                  {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()});
  CHECK(prediction_json(std::vector<Fetched>{{"a", &a}}, 3) ==
        "{\"a\":\"inf\"}\n{\"a\":\"-inf\"}\n{\"a\":\"nan\"}\n");
}

TEST_CASE("what has no value for each row is refused") {
  const auto mean = tensor_of<float>(engine::DataType::float32, {1}, {0.5F});
  CHECK_THROWS_AS(prediction_text(std::vector<Fetched>{{"mean", &mean}}, 2), Error);
}

}  // namespace
}  // namespace fleetrun::inference
