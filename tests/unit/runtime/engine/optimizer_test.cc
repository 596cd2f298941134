// Update operators against the formulas in double precision, dense and by rows.

#include "runtime/engine/optimizer.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "tests/support/engine_program.h"
#include "tests/support/errors.h"

using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

using Kind = OptimizerConfig::Kind;

/// One value's training by hand.
struct Reference {
  OptimizerConfig config;
  double w = 1.0, m = 0.0, v = 0.0, s = 0.0;
  int step = 0;

  void update(double gradient) {
    const double g = gradient + config.l2_decay * w + config.l1_decay * (w > 0 ? 1 : w < 0 ? -1 : 0);
    ++step;
    switch (config.kind) {
      case Kind::sgd:
        w -= config.learning_rate * g;
        break;
      case Kind::momentum:
        m = config.momentum * m + g;
        w -= config.learning_rate * (config.nesterov ? g + config.momentum * m : m);
        break;
      case Kind::adagrad:
        m += g * g;
        w -= config.learning_rate * g / (std::sqrt(m) + config.epsilon);
        break;
      case Kind::ftrl:
        ftrl(g);
        break;
      case Kind::adam:
        w -= config.learning_rate * config.own_decay * w;
        m = config.beta1 * m + (1 - config.beta1) * g;
        v = config.beta2 * v + (1 - config.beta2) * g * g;
        w -= config.learning_rate * m / (1 - std::pow(config.beta1, step)) /
             (std::sqrt(v / (1 - std::pow(config.beta2, step))) + config.epsilon);
        break;
      case Kind::rmsprop:
        s = config.rho * s + (1 - config.rho) * g * g;
        m = config.centered ? config.rho * m + (1 - config.rho) * g : 0.0;
        v = config.momentum * v + config.learning_rate * g / std::sqrt(s - m * m + config.epsilon);
        w -= v;
        break;
      case Kind::adamax:
        m = config.beta1 * m + (1 - config.beta1) * g;
        v = std::max(std::abs(g), config.beta2 * v + config.epsilon);
        w -= config.learning_rate / (1 - std::pow(config.beta1, step)) * m / v;
        break;
      case Kind::adadelta:
        s = config.rho * s + (1 - config.rho) * g * g;
        m = std::sqrt((v + config.epsilon) / (s + config.epsilon)) * g;
        v = config.rho * v + (1 - config.rho) * m * m;
        w -= config.learning_rate * m;
        break;
      case Kind::decayed_adagrad:
        m = config.rho * m + (1 - config.rho) * g * g;
        w -= config.learning_rate * g / (std::sqrt(m) + config.epsilon);
        break;
      case Kind::lamb:  // a step of one value needs the others: tests/golden/optimizers
      case Kind::lars_momentum:
        break;
    }
  }

  void ftrl(double g) {
    const double before = std::pow(m, -config.learning_rate_power);
    m += g * g;
    const double after = std::pow(m, -config.learning_rate_power);
    v += g - (after - before) / config.learning_rate * w;
    w = std::abs(v) <= config.l1
            ? 0
            : ((v > 0 ? config.l1 : -config.l1) - v) / (after / config.learning_rate + 2 * config.l2);
  }
};

std::vector<OptimizerConfig> configs() {
  std::vector<OptimizerConfig> all;
  for (const Kind kind : {Kind::sgd, Kind::adagrad, Kind::adam, Kind::momentum, Kind::ftrl}) {
    for (const double decay : {0.0, 0.3}) {
      all.push_back({.kind = kind,
                     .learning_rate = 0.1,
                     .epsilon = 1e-6,
                     .momentum = 0.8,
                     .l1 = 0.05,
                     .l2 = 0.1,
                     .l1_decay = decay / 2,
                     .l2_decay = decay});
    }
  }
  all[2].initial_accumulator = all[3].initial_accumulator = 0.5;
  all.push_back(all[6]);
  all.back().nesterov = true;
  all.push_back(all[8]);
  all.back().learning_rate_power = -0.7;
  all.back().initial_accumulator = 0.1;
  for (const bool centered : {false, true}) {
    all.push_back({.kind = Kind::rmsprop,
                   .learning_rate = 0.1,
                   .epsilon = 1e-3,
                   .momentum = 0.8,
                   .rho = 0.9,
                   .centered = centered});
  }
  for (const Kind kind : {Kind::adam, Kind::adamax, Kind::adadelta}) {
    all.push_back({.kind = kind, .learning_rate = 0.1, .epsilon = 1e-3, .rho = 0.8, .l2_decay = 0.1});
  }
  all[all.size() - 3].own_decay = 0.2;
  return all;
}

Reference reference_of(const OptimizerConfig& config) {
  Reference reference{.config = config};
  const bool accumulates = config.kind == Kind::adagrad || config.kind == Kind::ftrl;
  reference.m = accumulates ? config.initial_accumulator : 0.0;
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
    // A weight that ftrl did not make goes when it is stepped without a gradient;
    // adam's correction of rows is a step ahead.
    if (config.kind == Kind::ftrl || config.kind == Kind::adam) continue;
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
  // Row 1 is met in the second step only, whose correction is that of the third.
  Reference once{.config = config}, always{.config = config};
  once.step = 2;
  once.update(-1.0);
  CHECK(lazy[1] == doctest::Approx(once.w).epsilon(1e-5));
  always.step = 1;
  for (const double gradient : {0.0, -1.0, 0.0}) always.update(gradient);
  CHECK(moved[1] == doctest::Approx(always.w).epsilon(1e-5));
  CHECK(lazy[3] == 1.0f);
}

TEST_CASE("adam corrects epsilon only in rows that are in the batch") {
  const double epsilon = 0.01, rate = 0.1, beta1 = 0.9, beta2 = 0.999;
  const auto rows = train_rows({.kind = Kind::adam, .learning_rate = rate, .epsilon = epsilon}, true);
  // Row 1 has a gradient in the second step only.
  double w = 1.0, m = 0.1 * -1.0, v = 0.001;
  for (const int t : {3, 4}) {  // of the corrections, in the second and in the third step
    const double correction = std::sqrt(1.0 - std::pow(beta2, t));
    const double added = t == 3 ? epsilon * correction : epsilon;
    w -= rate * correction / (1.0 - std::pow(beta1, t)) * m / (std::sqrt(v) + added);
    m *= beta1;
    v *= beta2;
  }
  CHECK(rows[1] == doctest::Approx(w).epsilon(1e-5));
}

TEST_CASE("ftrl gives the published constants") {
  // TensorFlow's ftrl_test: rate 3, accumulator 0.1, three steps from 0.
  const OptimizerConfig config{.kind = Kind::ftrl, .learning_rate = 3.0, .initial_accumulator = 0.1};
  const double gradients[] = {0.1, 0.2, 0.01, 0.02};
  const double expected[] = {-2.60260963, -4.29698515, -0.28432083, -0.56694895};
  for (int i = 0; i < 4; ++i) {
    Program main, startup;
    Scope scope;
    add_parameter(main, scope, "w", floats({1}, {0}));
    add_data(main, "x", DataType::float32, {1});
    add(main, "elementwise_mul", {"w", "x"}, "y");
    add(main, "sum", {"y"}, "loss");
    minimize(main, startup, "loss", config);
    Executor(startup, scope).run({});
    Executor executor(main, scope);
    const Tensor x = floats({1}, {static_cast<float>(gradients[i])});
    for (int step = 0; step < 3; ++step) executor.run({{"x", &x}});
    CHECK(floats_of(scope.tensor("w"))[0] == doctest::Approx(expected[i]).epsilon(1e-5));
  }
}

TEST_CASE("a parameter's own rate and decay go before the optimizer's") {
  OptimizerConfig config{.kind = Kind::sgd, .learning_rate = 0.5, .l2_decay = 0.25};
  config.own["w"] = {.rate_factor = 2.0, .has_decay = true, .l1_decay = 0.125};
  const OptimizerConfig own = config_of(config, "w");
  CHECK(own.learning_rate == 1.0);
  CHECK(own.l1_decay == 0.125);
  CHECK(own.l2_decay == 0.0);
  CHECK(own.own.empty());
  CHECK(config_of(config, "b").l2_decay == 0.25);
  config.own["w"].has_decay = false;
  CHECK(config_of(config, "w").l2_decay == 0.25);
}

TEST_CASE("a schedule's variable is a factor of the learning rate") {
  for (OptimizerConfig config : configs()) {
    INFO(to_string(config.kind));
    Reference reference = reference_of(config);
    config.learning_rate = 1.0;
    config.rate = "rate";
    Program main, startup;
    Scope scope;
    add_parameter(main, scope, "w", floats({1}, {1}));
    main.add_variable({.name = "rate", .shape = {1}, .persistable = true});
    add_data(main, "x", DataType::float32, {1});
    add(main, "elementwise_mul", {"w", "x"}, "y");
    add(main, "sum", {"y"}, "loss");
    minimize(main, startup, "loss", config);
    Executor(startup, scope).run({});
    Executor executor(main, scope);
    const Tensor x = floats({1}, {0.75f});
    for (const float rate : {0.1f, 0.05f, 0.2f}) {
      scope.tensor("rate") = floats({1}, {rate});
      executor.run({{"x", &x}});
      reference.config.learning_rate = static_cast<double>(rate);
      reference.update(0.75);
      CHECK(floats_of(scope.tensor("w"))[0] == doctest::Approx(reference.w).epsilon(1e-5));
    }
  }
}

namespace {

/// What one step of sgd with rate 1 takes off a dense parameter of gradient (3, 4) and off a 3-row embedding
/// whose rows 0 and 2 get -6 and 2 · 4.
std::vector<float> steps_of(OptimizerConfig config) {
  config.learning_rate = 1.0;
  Program main, startup;
  Scope scope;
  add_parameter(main, scope, "v", floats({2}, {0, 0}));
  add_parameter(main, scope, "w", floats({3, 1}, {0, 0, 0}));
  add_data(main, "ids", DataType::int64, {-1});
  add_data(main, "x", DataType::float32, {-1, 1});
  add_data(main, "y", DataType::float32, {2});
  add(main, "embedding", {"w", "ids"}, "rows", {{"is_sparse", true}});
  add(main, "elementwise_mul", {"rows", "x"}, "product");
  add(main, "sum", {"product"}, "first");
  add(main, "elementwise_mul", {"v", "y"}, "other product");
  add(main, "sum", {"other product"}, "second");
  add(main, "elementwise_add", {"first", "second"}, "loss");
  minimize(main, startup, "loss", config);
  const Tensor ids = ints({3}, {2, 0, 2}), x = floats({3, 1}, {4, -6, 4}), y = floats({2}, {3, 4});
  Executor(main, scope).run({{"ids", &ids}, {"x", &x}, {"y", &y}});
  std::vector<float> steps = floats_of(scope.tensor("v")), rows = floats_of(scope.tensor("w"));
  steps.insert(steps.end(), rows.begin(), rows.end());
  return steps;
}

void check_steps(const OptimizerConfig& config, const std::vector<double>& wanted) {
  const auto steps = steps_of(config);
  REQUIRE(steps.size() == wanted.size());
  for (std::size_t i = 0; i < steps.size(); ++i) CHECK(steps[i] == doctest::Approx(wanted[i]).epsilon(1e-6));
}

}  // namespace

TEST_CASE("gradients are clipped by the norm of each, or of all, rows of one key added up first") {
  using Clip = OptimizerConfig::Clip;
  check_steps({}, {-3, -4, 6, 0, -8});
  // Norms 5 and 10.
  check_steps({.clip_kind = Clip::norm, .clip = 5}, {-3, -4, 3, 0, -4});
  const double factor = 5 / std::sqrt(125.0);
  check_steps({.clip_kind = Clip::global_norm, .clip = 5},
              {-3 * factor, -4 * factor, 6 * factor, 0, -8 * factor});
  OptimizerConfig one_free{.clip_kind = Clip::global_norm, .clip = 5};
  one_free.own["v"].is_clipped = false;
  check_steps(one_free, {-3, -4, 3, 0, -4});
  one_free.own["w"].is_clipped = false;
  one_free.own.erase("v");
  one_free.clip_kind = Clip::value;
  one_free.clip_least = -1;
  one_free.clip = 3.5;
  check_steps(one_free, {-3, -3.5, 6, 0, -8});
}

TEST_CASE("rows are clipped by value, those of one key added up first") {
  check_steps({.clip_kind = OptimizerConfig::Clip::value, .clip_least = -1, .clip = 3.5},
              {-3, -3.5, 1, 0, -3.5});
}
