#include "runtime/engine/program.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "runtime/engine/optimizer.h"
#include "runtime/engine/program_text.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

TEST_CASE("unknown variables and operators are refused with the nearest name") {
  Program program;
  add_data(program, "dense_input", DataType::float32, {-1, 13});
  try {
    add(program, "relu", {"dense_inputs"}, "y");
    FAIL("no error was thrown");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "the program has no variable 'dense_inputs'");
    CHECK(error.hint() == "did you mean 'dense_input'?");
  }
  try {
    add(program, "rellu", {"dense_input"}, "y");
    FAIL("no error was thrown");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "there is no operator 'rellu'");
    CHECK(error.hint() == "did you mean 'relu'?");
  }
}

TEST_CASE("a name cannot become another variable") {
  Program program;
  add_data(program, "x", DataType::float32, {-1, 13});
  add_data(program, "x", DataType::float32, {-1, 13});
  CHECK_THROWS_WITH_AS(add_data(program, "x", DataType::int64, {-1}),
                       "variable 'x' is there already, as float32 [-1, 13]; it cannot become int64 [-1]",
                       Error);
}

TEST_CASE("gradients of a variable that is used three times are added up once") {
  Program program;
  Scope scope;
  add_parameter(program, scope, "w", floats({2}, {3, 4}));
  add(program, "elementwise_mul", {"w", "w"}, "square");
  add(program, "elementwise_add", {"square", "w"}, "sum");
  add(program, "sum", {"sum"}, "loss");
  const auto gradients = append_backward(program, "loss");
  REQUIRE(gradients.size() == 1);
  CHECK(gradients[0] == ParameterGradient{"w", "w@GRAD", false, {}});
  int additions = 0;
  for (const Operator& op : program.operators()) additions += op.type == "add_n" ? 1 : 0;
  CHECK(additions == 1);
  Executor executor(program, scope);
  executor.run({});
  CHECK(floats_of(executor.tensor("w@GRAD")) == std::vector<float>{7, 9});
}

TEST_CASE("a variable with stop_gradient ends the way back") {
  Program program;
  Scope scope;
  add_parameter(program, scope, "w", floats({2}, {3, 4}));
  add(program, "square", {"w"}, "fixed");
  program.variable("fixed").stop_gradient = true;
  add(program, "elementwise_mul", {"fixed", "w"}, "product");
  add(program, "sum", {"product"}, "loss");
  append_backward(program, "loss");
  Executor executor(program, scope);
  executor.run({});
  CHECK(floats_of(executor.tensor("w@GRAD")) == std::vector<float>{9, 16});
}

TEST_CASE("an embedding with is_sparse has a row gradient; one that is used otherwise too has a dense one") {
  Program program;
  Scope scope;
  add_parameter(program, scope, "w", floats({4, 2}, std::vector<float>(8, 1.0f)));
  add_data(program, "a", DataType::int64, {-1});
  add_data(program, "b", DataType::int64, {-1});
  add(program, "embedding", {"w", "a"}, "rows_a", {{"is_sparse", true}});
  add(program, "embedding", {"w", "b"}, "rows_b", {{"is_sparse", true}});
  Program dense = program;
  for (Program* each : {&program, &dense}) {
    add(*each, "sum", {"rows_a"}, "sum_a");
    add(*each, "sum", {"rows_b"}, "sum_b");
    add(*each, "scale", {"sum_b"}, "twice_b", {{"scale", 2.0}});
  }
  add(program, "add_n", {"sum_a", "twice_b"}, "loss");
  add(dense, "sum", {"w"}, "sum_w");
  add(dense, "add_n", {"sum_a", "twice_b", "sum_w"}, "loss");
  const Tensor a = ints({2}, {1, 3}), b = ints({1}, {3});
  const std::map<std::string, const Tensor*> feed = {{"a", &a}, {"b", &b}};

  const auto gradients = append_backward(program, "loss");
  CHECK(gradients[0] == ParameterGradient{"w", "w@GRAD", true, "w@GRAD@KEYS"});
  Executor rows(program, scope);
  rows.run(feed);
  // The way back meets the last lookup first.
  CHECK(ints_of(rows.tensor("w@GRAD@KEYS")) == std::vector<std::int64_t>{3, 1, 3});
  CHECK(floats_of(rows.tensor("w@GRAD")) == std::vector<float>{2, 2, 1, 1, 1, 1});

  CHECK_FALSE(append_backward(dense, "loss")[0].rows);
  Executor whole(dense, scope);
  whole.run(feed);
  CHECK(floats_of(whole.tensor("w@GRAD")) == std::vector<float>{1, 1, 2, 2, 1, 1, 4, 4});
}

TEST_CASE("a loss must be one value that depends on a parameter") {
  Program program;
  Scope scope;
  add_parameter(program, scope, "w", floats({2}, {3, 4}));
  add_data(program, "x", DataType::float32, {1});
  add(program, "square", {"w"}, "y");
  add(program, "square", {"x"}, "z");
  CHECK_THROWS_WITH_AS(append_backward(program, "y"), "the loss 'y' has the shape [2]", Error);
  CHECK_THROWS_WITH_AS(append_backward(program, "z"),
                       "the loss 'z' depends on no trainable parameter through differentiable operators",
                       Error);
}

TEST_CASE("a test clone has neither gradients nor updates") {
  Program main, startup;
  Scope scope;
  add_parameter(main, scope, "w", floats({2}, {3, 4}));
  add(main, "sum", {"w"}, "loss");
  minimize(main, startup, "loss", {});
  CHECK(main.operators().size() > 1);
  CHECK(clone_for_test(main).operators().size() == 1);
}

TEST_CASE("a program can be read by people") {
  Program program;
  add_data(program, "x", DataType::float32, {-1, 2});
  add(program, "scale", {"x"}, "y", {{"scale", 2.0}, {"bias_after_scale", true}});
  CHECK(to_string(program) ==
        "var x : float32 [-1, 2] data\n"
        "var y : float32 [-1, 2]\n"
        "y = scale(x) {bias_after_scale=true, scale=2}\n");
}

TEST_CASE("a program is read from its words as it was") {
  Program program;
  Scope scope;
  program.random_seed = 7;
  add_parameter(program, scope, "w", floats({2}, {3, 4}));
  add(program, "scale", {"w"}, "y", {{"scale", 0.1}, {"bias_after_scale", true}, {"text", std::string()}});
  add(program, "reshape", {"y"}, "z", {{"shape", std::vector<std::int64_t>{-1, 2}}});
  program.operators().back().attributes["names"] = std::vector<std::string>{"", "a b", "7"};
  program.operators().back().attributes["numbers"] = std::vector<double>{1e300, -0.5};
  std::vector<std::string> words = to_words(program);
  CHECK(program_of_words(words) == program);
  words.pop_back();
  CHECK_THROWS_WITH_AS(program_of_words(words), "the words of a loop's body end too early", Error);
}

TEST_CASE("a value that is written again has the gradient of what wrote it last") {
  Program program;
  Scope scope;
  add_parameter(program, scope, "w", floats({1}, {3}));
  add(program, "fill_constant", {}, "x", {{"shape", std::vector<std::int64_t>{1}}, {"value", 2.0}});
  program.variable("x").stop_gradient = false;
  add(program, "elementwise_add", {"x", "w"}, "y");
  add(program, "assign", {"y"}, "x");
  add(program, "sum", {"x"}, "loss");
  append_backward(program, "loss");
  Executor executor(program, scope);
  executor.run({});
  CHECK(executor.tensor("w@GRAD").values<float>()[0] == 1.0f);
}
