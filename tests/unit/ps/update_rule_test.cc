#include "ps/update_rule.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace fleetrun::ps;

namespace {

struct Row {
  Updater updater;
  std::vector<float> values;
  std::vector<float> state;
  std::uint32_t step = 0;

  Row(const UpdateRule& rule, std::size_t width)
      : updater(rule), values(width, 0.0f), state(updater.state_floats(width)) {
    updater.reset(state);
  }
  void push(const std::vector<float>& gradient) {
    updater.apply(values.data(), state.data(), gradient.data(), gradient.size(), ++step);
  }
};

UpdateRule rule(UpdateRule::Kind kind, float rate) {
  UpdateRule out;
  out.kind = kind;
  out.learning_rate = rate;
  return out;
}

std::vector<float> one_to_ten() {
  return {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
}

}  // namespace

TEST_CASE("sgd takes the learning rate times the gradient") {
  Row row(rule(UpdateRule::Kind::sgd, 0.1f), 10);
  row.push(one_to_ten());
  for (std::size_t i = 0; i < 10; ++i)
    CHECK(row.values[i] == doctest::Approx(-0.1 * static_cast<double>(i + 1)));
  CHECK(row.state.empty());
}

TEST_CASE("sum adds the gradient") {
  Row row(rule(UpdateRule::Kind::sum, 0.1f), 10);
  row.push(one_to_ten());
  row.push(one_to_ten());
  for (std::size_t i = 0; i < 10; ++i) CHECK(row.values[i] == static_cast<float>(2 * (i + 1)));
}

TEST_CASE("adagrad divides by the root of the squares so far, per value") {
  UpdateRule adagrad = rule(UpdateRule::Kind::adagrad, 0.5f);
  adagrad.epsilon = 0.0f;
  adagrad.initial_accumulator = 0.1f;
  Row row(adagrad, 2);
  // a = 0.1 + 9 = 9.1: w = -0.5 * 3 / 3.0166206 = -0.4972452; then a = 10.1: w += 0.5 / 3.1780497.
  row.push({3.0f, 0.0f});
  CHECK(row.state[0] == doctest::Approx(9.1));
  CHECK(row.values[0] == doctest::Approx(-0.4972452));
  row.push({-1.0f, 0.0f});
  CHECK(row.values[0] == doctest::Approx(-0.3399160));
  CHECK(row.values[1] == 0.0f);
  CHECK(row.state[1] == 0.1f);
}

TEST_CASE("adagrad adds epsilon to the root") {
  UpdateRule adagrad = rule(UpdateRule::Kind::adagrad, 1.0f);
  adagrad.epsilon = 0.5f;
  Row row(adagrad, 1);
  row.push({2.0f});
  CHECK(row.values[0] == doctest::Approx(-2.0 / 2.5));
}

TEST_CASE("the first step of adam is the learning rate, whatever the gradient's size") {
  Row row(rule(UpdateRule::Kind::adam, 0.1f), 10);
  row.push(one_to_ten());
  for (std::size_t i = 0; i < 10; ++i) {
    const double g = static_cast<double>(i + 1);
    CHECK(row.values[i] == doctest::Approx(-0.1));
    CHECK(row.state[i] == doctest::Approx(0.1 * g));
    CHECK(row.state[10 + i] == doctest::Approx(0.001 * g * g));
  }
}

TEST_CASE("adam corrects both moments for their bias") {
  Row row(rule(UpdateRule::Kind::adam, 0.1f), 1);
  row.push({4.0f});
  row.push({0.0f});
  // m / (1 - 0.9^2) = 0.36 / 0.19, v / (1 - 0.999^2) = 0.015984 / 0.001999: the second step is
  // 0.1 * 1.8947368 / 2.8277197 = 0.0670058.
  CHECK(row.values[0] == doctest::Approx(-0.1670058));
}

TEST_CASE("adam adds epsilon to the corrected root") {
  UpdateRule adam = rule(UpdateRule::Kind::adam, 1.0f);
  adam.epsilon = 0.5f;
  Row row(adam, 1);
  row.push({2.0f});
  // Corrected m = 2, corrected root of v = 2.
  CHECK(row.values[0] == doctest::Approx(-2.0 / 2.5));
}

TEST_CASE("adam follows its formula in double precision over many steps, also where corrections end") {
  UpdateRule adam = rule(UpdateRule::Kind::adam, 0.001f);
  adam.beta2 = 0.99f;
  Row row(adam, 1);
  double m = 0;
  double v = 0;
  double w = 0;
  const double b1 = adam.beta1;
  const double b2 = adam.beta2;
  for (int t = 1; t <= 5000; ++t) {
    const float g = std::sin(static_cast<float>(t)) + 0.25f;
    row.push({g});
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    w -= adam.learning_rate * (m / (1 - std::pow(b1, t))) /
         (std::sqrt(v / (1 - std::pow(b2, t))) + adam.epsilon);
  }
  CHECK(row.values[0] == doctest::Approx(w).epsilon(1e-4));
}

TEST_CASE("an odd width is updated to its last value") {
  for (std::size_t width = 1; width < 20; ++width) {
    Row row(rule(UpdateRule::Kind::adam, 0.1f), width);
    row.push(std::vector<float>(width, 1.0f));
    for (const float value : row.values) CHECK(value == row.values[0]);
  }
}
