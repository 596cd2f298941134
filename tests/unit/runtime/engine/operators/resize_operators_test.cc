// Other sizes: small cases worked out by hand. Gradients: gradient_test.cc; values of larger cases:
// tests/oracles/names/resized.py.

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

using Sizes = std::vector<std::int64_t>;

std::vector<float> resized(const std::vector<float>& values, std::map<std::string, Attribute> attributes) {
  Program program;
  Scope scope;
  add_data(program, "x", DataType::float32, {1, 1, -1});
  program.append({"interpolate", {"x"}, {"y"}, std::move(attributes)});
  Executor executor(program, scope);
  const Tensor x = floats({1, 1, static_cast<std::int64_t>(values.size())}, values);
  executor.run({{"x", &x}});
  return floats_of(executor.tensor("y"));
}

}  // namespace

TEST_CASE("a line of two values in four places") {
  const std::string linear = "linear", nearest = "nearest";
  CHECK(resized({0, 3}, {{"interp_method", linear}, {"sizes", Sizes{4}}}) == std::vector<float>{0, 1, 2, 3});
  CHECK(resized({0, 3}, {{"interp_method", linear}, {"sizes", Sizes{4}}, {"align_corners", false}}) ==
        std::vector<float>{0, 1.5f, 3, 3});
  CHECK(resized({0, 4}, {{"interp_method", linear},
                         {"sizes", Sizes{4}},
                         {"align_corners", false},
                         {"align_mode", std::int64_t{0}}}) == std::vector<float>{0, 1, 3, 4});
  CHECK(resized({0, 3}, {{"interp_method", nearest}, {"sizes", Sizes{4}}, {"align_corners", false}}) ==
        std::vector<float>{0, 0, 3, 3});
}

TEST_CASE("a scale decides the size when the program runs") {
  CHECK(resized({1, 2, 3}, {{"interp_method", std::string("nearest")},
                            {"scales", std::vector<double>{2.0}},
                            {"align_corners", false}}) == std::vector<float>{1, 1, 2, 2, 3, 3});
}

TEST_CASE("what it cannot do is refused") {
  CHECK_THROWS_AS(resized({1}, {{"interp_method", std::string("best")}, {"sizes", Sizes{2}}}), Error);
  CHECK_THROWS_AS(resized({1}, {{"interp_method", std::string("linear")}}), Error);
  CHECK_THROWS_AS(resized({1}, {{"interp_method", std::string("linear")}, {"sizes", Sizes{0}}}), Error);
}
