// Losses, labels and distances of sequences without places: small cases worked out by hand.
// Gradients: gradient_test.cc; values of larger cases: tests/oracles/names/aligned.py.

#include <cmath>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

/// One operator over data variables with these values, and its outputs.
struct Case {
  Program program;
  Scope scope;
  std::map<std::string, const Tensor*> feed;
  Operator op;

  Case(const std::string& type, std::map<std::string, Attribute> attributes, std::vector<std::string> outputs)
      : op{type, {}, std::move(outputs), std::move(attributes)} {}

  void input(const std::string& name, const Tensor& value) {
    add_data(program, name, value.type(), value.shape(), value.offsets.empty() ? 0 : 1);
    op.inputs.push_back(name);
    feed[name] = &value;
  }
  /// Runs it and gives an output.
  Tensor run(const std::string& output) {
    program.append(op);
    Executor executor(program, scope);
    executor.run(feed);
    return std::move(executor.tensor(output));
  }
  std::string error() {
    try {
      run(op.outputs[0]);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
};

Tensor sequences(Tensor values, std::vector<std::size_t> offsets) {
  values.offsets = std::move(offsets);
  return values;
}

}  // namespace

TEST_CASE("the loss of labels is that of all alignments with them") {
  // Both frames have one half for the blank and for the label: three of four ways give the label.
  Case of("ctc_loss", {}, {"loss"});
  const Tensor logits = sequences(floats({4, 2}, {1, 1, 1, 1, 0, 0, 3, 3}), {0, 2, 4});
  const Tensor labels = sequences(ints({1, 1}, {1}), {0, 1, 1});
  of.input("logits", logits);
  of.input("labels", labels);
  const std::vector<float> losses = floats_of(of.run("loss"));
  CHECK(losses[0] == doctest::Approx(-std::log(0.75)));
  CHECK(losses[1] == doctest::Approx(-std::log(0.25)));  // no label: two blanks
}

TEST_CASE("a repeated label needs a blank between, and too few frames give no loss") {
  Case of("ctc_loss", {}, {"loss"});
  const Tensor logits = floats({3, 2, 2}, std::vector<float>(12, 0.0f));
  const Tensor labels = ints({2, 2}, {1, 1, 1, 1}), frames = ints({2}, {3, 2}), counts = ints({2}, {2, 2});
  for (const auto& [name, value] :
       {std::pair{"logits", &logits}, {"labels", &labels}, {"frames", &frames}, {"counts", &counts}}) {
    of.input(name, *value);
  }
  const std::vector<float> losses = floats_of(of.run("loss"));
  CHECK(losses[0] == doctest::Approx(-std::log(1.0 / 8)));  // label, blank, label
  CHECK(losses[1] == 0.0f);
}

TEST_CASE("a label that is none of the classes is named") {
  Case of("ctc_loss", {}, {"loss"});
  const Tensor logits = sequences(floats({1, 2}, {0, 0}), {0, 1});
  const Tensor labels = sequences(ints({1, 1}, {2}), {0, 1});
  of.input("logits", logits);
  of.input("labels", labels);
  CHECK(of.error().find("label 2 is outside of [0, 2)") != std::string::npos);
}

TEST_CASE("labels of an alignment: repeated ones made one, blanks left out") {
  Case of("ctc_align", {}, {"labels"});
  const Tensor frames = sequences(ints({7, 1}, {1, 1, 0, 1, 0, 0, 2}), {0, 4, 6, 7});
  of.input("frames", frames);
  const Tensor labels = of.run("labels");
  CHECK(ints_of(labels) == std::vector<std::int64_t>{1, 1, 2});
  CHECK(labels.offsets == std::vector<std::size_t>{0, 2, 2, 3});
}

TEST_CASE("the distance of two words, and over the right one's length") {
  for (const bool normalized : {false, true}) {
    Case of("edit_distance", {{"normalized", normalized}}, {"distance", "sequences"});
    // kitten, sitting; and a word that is the other's beginning.
    const Tensor found = sequences(ints({8, 1}, {11, 9, 20, 20, 5, 14, 1, 2}), {0, 6, 8});
    const Tensor right = sequences(ints({11, 1}, {19, 9, 20, 20, 9, 14, 7, 1, 2, 3, 4}), {0, 7, 11});
    of.input("found", found);
    of.input("right", right);
    const std::vector<float> wanted =
        normalized ? std::vector<float>{3.0f / 7.0f, 0.5f} : std::vector<float>{3.0f, 2.0f};
    CHECK(floats_of(of.run("distance")) == wanted);
  }
}
