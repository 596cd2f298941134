// Update operators against the formulas in double precision, dense and by rows.

#include "runtime/engine/optimizer.h"

#include <cmath>

#include <doctest/doctest.h>

#include "tests/support/engine_program.h"

using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

using Kind = OptimizerConfig::Kind;

/// One value's training by hand.
struct Reference {
  OptimizerConfig config;
  double w = 1.0, m = 0.0, v = 0.0;
  int step = 0;

  void update(double gradient) {
    const double g = gradient + config.l2_decay * w;
    ++step;
    if (config.kind == Kind::sgd) {
      w -= config.learning_rate * g;
    } else if (config.kind == Kind::adagrad) {
      m += g * g;
      w -= config.learning_rate * g / (std::sqrt(m) + config.epsilon);
    } else {
      m = config.beta1 * m + (1 - config.beta1) * g;
      v = config.beta2 * v + (1 - config.beta2) * g * g;
      const double mean = m / (1 - std::pow(config.beta1, step)),
                   square = v / (1 - std::pow(config.beta2, step));
      w -= config.learning_rate * mean / (std::sqrt(square) + config.epsilon);
    }
  }
};

std::vector<OptimizerConfig> configs() {
  std::vector<OptimizerConfig> all;
  for (const Kind kind : {Kind::sgd, Kind::adagrad, Kind::adam}) {
    for (const double decay : {0.0, 0.3}) {
      all.push_back({.kind = kind, .learning_rate = 0.1, .epsilon = 1e-6, .l2_decay = decay});
    }
  }
  all[2].initial_accumulator = all[3].initial_accumulator = 0.5;
  return all;
}

Reference reference_of(const OptimizerConfig& config) {
  Reference reference{.config = config};
  reference.m = config.kind == Kind::adagrad ? config.initial_accumulator : 0.0;
  return reference;
}

}  // namespace

TEST_CASE("dense updates follow their formulas") {
  for (const OptimizerConfig& config : configs()) {
    INFO(to_string(config.kind) << " decay " << config.l2_decay);
    Program main, startup;
    Scope scope;
    add_parameter(main, scope, "w", floats({2}, {1, 1}));
    add_data(main, "x", DataType::float32, {2});
    add(main, "elementwise_mul", {"w", "x"}, "y");
    add(main, "sum", {"y"}, "loss");
    minimize(main, startup, "loss", config);
    Executor(startup, scope).run({});
    Executor executor(main, scope);
    Reference first = reference_of(config), second = reference_of(config);
    for (const float gradient : {0.5f, -0.25f, 2.0f, 0.0f}) {
      const Tensor x = floats({2}, {gradient, -gradient * 3});
      executor.run({{"x", &x}});
      first.update(static_cast<double>(gradient));
      second.update(static_cast<double>(gradient) * -3);
      CHECK(floats_of(scope.tensor("w"))[0] == doctest::Approx(first.w).epsilon(1e-5));
      CHECK(floats_of(scope.tensor("w"))[1] == doctest::Approx(second.w).epsilon(1e-5));
    }
  }
}

namespace {

/// Trains a 4-row embedding on ids whose gradient is `x`; returns column 0 of each row.
std::vector<float> train_rows(const OptimizerConfig& config, bool is_sparse) {
  Program main, startup;
  Scope scope;
  add_parameter(main, scope, "w", floats({4, 1}, {1, 1, 1, 1}));
  add_data(main, "ids", DataType::int64, {-1});
  add_data(main, "x", DataType::float32, {-1, 1});
  add(main, "embedding", {"w", "ids"}, "rows", {{"is_sparse", is_sparse}});
  add(main, "elementwise_mul", {"rows", "x"}, "y");
  add(main, "sum", {"y"}, "loss");
  minimize(main, startup, "loss", config);
  Executor(startup, scope).run({});
  Executor executor(main, scope);
  const Tensor ids[] = {ints({3}, {2, 0, 2}), ints({2}, {1, 0}), ints({1}, {2})};
  const Tensor x[] = {floats({3, 1}, {0.5, 1, 0.25}), floats({2, 1}, {-1, 2}), floats({1, 1}, {3})};
  for (int step = 0; step < 3; ++step) executor.run({{"ids", &ids[step]}, {"x", &x[step]}});
  return floats_of(scope.tensor("w"));
}

}  // namespace

TEST_CASE("row gradients update as dense ones do, equal keys added up first") {
  for (const OptimizerConfig& config : configs()) {
    // Decay of rows that are not in the batch is what row gradients leave out.
    if (config.l2_decay != 0.0) continue;
    INFO(to_string(config.kind));
    const auto rows = train_rows(config, true), dense = train_rows(config, false);
    for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i] == doctest::Approx(dense[i]).epsilon(1e-6));
  }
}

TEST_CASE("lazy adam leaves rows alone that are not in the batch") {
  OptimizerConfig config{.kind = Kind::adam, .learning_rate = 0.1};
  const auto moved = train_rows(config, true);
  config.lazy_rows = true;
  const auto lazy = train_rows(config, true);
  Reference once{.config = config};
  once.step = 1;  // row 1 is met in the second step only
  once.update(-1.0);
  CHECK(lazy[1] == doctest::Approx(once.w).epsilon(1e-5));
  CHECK(moved[1] != doctest::Approx(once.w).epsilon(1e-3));
  CHECK(lazy[3] == 1.0f);
}
