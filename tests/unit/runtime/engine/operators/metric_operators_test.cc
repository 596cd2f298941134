#include <random>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

/// A program of one auc operator with its counters.
struct Auc {
  Program program;
  Scope scope;
  std::unique_ptr<Executor> executor;

  explicit Auc(std::map<std::string, Attribute> attributes = {}, std::int64_t counters = 4096) {
    add_data(program, "p", DataType::float32, {-1, 2});
    add_data(program, "label", DataType::int64, {-1, 1});
    for (const char* name : {"pos", "neg"}) {
      Variable variable;
      variable.name = name;
      variable.type = DataType::int64;
      variable.shape = {counters};
      variable.persistable = true;
      program.add_variable(variable);
      Tensor& tensor = scope.tensor(name);
      tensor.resize(DataType::int64, {counters});
      for (std::int64_t& value : tensor.values<std::int64_t>()) value = 0;
    }
    program.append({"auc", {"p", "label", "pos", "neg"}, {"auc", "pos", "neg"}, attributes});
    executor = std::make_unique<Executor>(program, scope);
  }

  double run(const std::vector<float>& probabilities, const std::vector<std::int64_t>& labels) {
    const auto rows = static_cast<std::int64_t>(labels.size());
    Tensor p(DataType::float32, {rows, 2});
    for (std::size_t i = 0; i < probabilities.size(); ++i) {
      p.values<float>()[2 * i] = 1.0f - probabilities[i];
      p.values<float>()[2 * i + 1] = probabilities[i];
    }
    const Tensor label = ints({rows, 1}, labels);
    executor->run({{"p", &p}, {"label", &label}});
    return executor->tensor("auc").values<double>()[0];
  }
};

}  // namespace

TEST_CASE("auc counts pairs that are in order, and half of those that are equal") {
  // Pairs (positive, negative): .9>.8, .9>.1, .3<.8, .3>.1: 3 of 4.
  CHECK(Auc().run({0.9f, 0.8f, 0.3f, 0.1f}, {1, 0, 1, 0}) == doctest::Approx(0.75));
  CHECK(Auc().run({0.5f, 0.5f}, {1, 0}) == doctest::Approx(0.5));
  CHECK(Auc().run({0.9f, 1.0f}, {1, 1}) == 0.0);
}

TEST_CASE("auc agrees with the rank formula on random scores") {
  std::mt19937 random(1);
  std::vector<float> scores;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 2000; ++i) {
    // Multiples of 1/4095, so that buckets lose nothing.
    scores.push_back(static_cast<float>(random() % 4095) / 4095.0f + 1e-5f);
    labels.push_back(random() % 4095 < static_cast<unsigned>(scores.back() * 4095) ? 1 : 0);
  }
  double ordered = 0, pairs = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (labels[i] != 1 || labels[j] != 0) continue;
      pairs += 1;
      ordered += scores[i] > scores[j] ? 1.0 : scores[i] == scores[j] ? 0.5 : 0.0;
    }
  }
  CHECK(Auc().run(scores, labels) == doctest::Approx(ordered / pairs).epsilon(1e-9));
}

TEST_CASE("auc goes on from batch to batch until its counters are zeroed") {
  Auc auc;
  auc.run({0.9f, 0.8f}, {1, 0});
  CHECK(auc.run({0.3f, 0.1f}, {1, 0}) == doctest::Approx(0.75));
  for (const char* name : {"pos", "neg"}) {
    for (std::int64_t& value : auc.scope.tensor(name).values<std::int64_t>()) value = 0;
  }
  CHECK(auc.run({0.3f, 0.1f}, {1, 0}) == doctest::Approx(1.0));
}

TEST_CASE("auc of the last batch, and of a window of batches") {
  Auc last({{"slide", true}});
  CHECK(last.run({0.1f, 0.8f}, {1, 0}) == 0.0);
  CHECK(last.run({0.3f, 0.1f}, {1, 0}) == doctest::Approx(1.0));
  Auc window({{"slide_steps", std::int64_t{2}}}, 3 * 4096 + 1);
  CHECK(window.run({0.1f, 0.8f}, {1, 0}) == 0.0);
  CHECK(window.run({0.9f, 0.2f}, {1, 0}) == doctest::Approx(0.5));
  CHECK(window.run({0.95f, 0.3f}, {1, 0}) == doctest::Approx(1.0));
}

TEST_CASE("auc refuses what is no probability, and counters of another size") {
  CHECK_THROWS_WITH_AS(Auc().run({1.5f}, {1}), "auc: the prediction 1.500000 in 'p' is not a probability",
                       Error);
  CHECK_THROWS_AS(Auc({}, 100), Error);
}

TEST_CASE("accuracy counts labels among the k largest") {
  Program program;
  add_data(program, "p", DataType::float32, {-1, 3});
  add_data(program, "label", DataType::int64, {-1, 1});
  program.append({"accuracy", {"p", "label"}, {"top1", "correct", "total"}, {}});
  program.append({"accuracy", {"p", "label"}, {"top2"}, {{"k", std::int64_t{2}}}});
  Scope scope;
  Executor executor(program, scope);
  const Tensor p = floats({4, 3}, {3, 2, 1, 1, 2, 3, 1, 2, 3, 5, 5, 5});
  const Tensor label = ints({4, 1}, {0, 1, 0, 1});
  executor.run({{"p", &p}, {"label", &label}});
  CHECK(floats_of(executor.tensor("top1"))[0] == 0.25f);
  CHECK(floats_of(executor.tensor("top2"))[0] == 0.75f);
  CHECK(ints_of(executor.tensor("correct"))[0] == 1);
  CHECK(ints_of(executor.tensor("total"))[0] == 4);
}
