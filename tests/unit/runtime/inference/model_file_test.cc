#include "runtime/inference/model_file.h"

#include <doctest/doctest.h>

#include <string>

#include "runtime/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fleetrun::inference {
namespace {

std::string variable(const std::string& name, const std::string& fields) {
  return R"({"name": ")" + name +
         R"(", "type": "float32", "shape": [-1, 3], "lod_level": 0, "trainable": false,
             "stop_gradient": true, )" +
         fields + "}";
}

std::string model(const std::string& operators) {
  return R"({"format": "fleetrun program 1", "feeds": ["x"], "fetches": ["x"], "variables": [)" +
         variable("x", R"("is_data": true, "persistable": false)") + "," +
         variable("kept", R"("is_data": false, "persistable": true)") + R"(], "operators": [)" + operators +
         "]}";
}

std::string refusal(const std::string& text) {
  const tests::TempDir directory;
  const std::string path = directory.write("model.pdmodel", text);
  const Error error = tests::error_of([&path] { read_model(path); });
  CHECK(error.kind() == ErrorKind::data);
  CHECK(std::string(error.what()).starts_with(path));
  return std::string(error.what()).substr(path.size());
}

TEST_CASE("a program is read back") {
  const tests::TempDir directory;
  const ModelFile file = read_model(directory.write(
      "model.pdmodel",
      model(R"({"type": "scale", "inputs": ["x"], "outputs": ["y"], "attributes": {"scale": 2.0}})")));
  CHECK(file.program.operators().at(0).type == "scale");
  CHECK(file.feeds == std::vector<std::string>{"x"});
}

TEST_CASE("operators whose inputs nobody checks are not taken from a file") {
  CHECK(
      refusal(model(
          R"({"type": "embedding_grad", "inputs": ["x", "x", "x"], "outputs": ["kept"], "attributes": {}})")) ==
      " is damaged: embedding_grad(x, x, x): minimize() alone appends it");
  CHECK(refusal(model(R"({"type": "scale", "inputs": ["x"], "outputs": [""], "attributes": {}})")) ==
        " is damaged: scale(x): an output has no name");
  CHECK(refusal(model(
            R"({"type": "split", "inputs": ["x"], "outputs": ["y", "y"], "attributes": {"axis": 1}})")) ==
        " is damaged: split(x): 'y' is two of its outputs");
  CHECK(refusal(model(
            R"({"type": "transpose", "inputs": ["x"], "outputs": ["x"], "attributes": {"perm": [1, 0]}})")) ==
        " is damaged: transpose(x): 'x' is both read and written");
  CHECK(
      refusal(
          model(
              R"({"type": "concat", "inputs": ["kept", "x"], "outputs": ["kept"], "attributes": {"axis": 0}})"))
          .starts_with(" is damaged: concat: 'kept' is both read and written, and its size is not known"));
  CHECK(refusal(model(R"({"type": "linear_act", "inputs": ["x"], "outputs": ["y"], "attributes": {}})"))
            .starts_with(" is damaged: linear_act: is made by passes only"));
}

TEST_CASE("what is no program is refused") {
  CHECK(refusal("") == " is not a program of fleetrun");
  CHECK(refusal(std::string(100'000, '[')) == " is not a program of fleetrun");
  CHECK(refusal(model(R"({"type": "scale", "inputs": ["nothing"], "outputs": ["y"], "attributes": {}})")) ==
        " is damaged: the program has no variable 'nothing'");
  CHECK(refusal(model(R"({"type": "scale", "inputs": 3, "outputs": ["y"], "attributes": {}})"))
            .starts_with(" is damaged: "));
}

}  // namespace
}  // namespace fleetrun::inference
