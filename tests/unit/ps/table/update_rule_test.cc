#include "ps/table/update_rule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
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

TEST_CASE("Paddle's shared adagrad: one sum of squares for the row, which counts from the next gradient on") {
  // Source: Paddle's sparse_sgd_rule_test.
  UpdateRule shared = rule(UpdateRule::Kind::shared_adagrad, 0.1f);
  shared.initial_accumulator = 0.2f;
  Row row(shared, 10);
  row.push(one_to_ten());
  for (std::size_t i = 0; i < 10; ++i)
    CHECK(row.values[i] == doctest::Approx(-0.1 * static_cast<double>(i + 1)));
  REQUIRE(row.state.size() == 1);
  CHECK(row.state[0] == doctest::Approx(38.5));
  row.push(one_to_ten());
  CHECK(row.values[0] == doctest::Approx(-0.1 - 0.1 * std::sqrt(0.2 / 38.7)));
}

TEST_CASE("the scale of a push divides what both of Paddle's adagrads see") {
  for (const auto kind : {UpdateRule::Kind::shared_adagrad, UpdateRule::Kind::std_adagrad}) {
    UpdateRule scaled = rule(kind, 0.1f);
    scaled.initial_accumulator = 3.0f;
    Row row(scaled, 2);
    const std::vector<float> gradient{4.0f, 8.0f};
    row.updater.apply(row.values.data(), row.state.data(), gradient.data(), 2, 1, 4.0f);
    CHECK(row.values[0] == doctest::Approx(-0.1));
    CHECK(row.values[1] == doctest::Approx(-0.2));
    CHECK(row.state[0] == doctest::Approx(kind == UpdateRule::Kind::std_adagrad ? 1.0 : 2.5));
    if (kind == UpdateRule::Kind::std_adagrad) CHECK(row.state[1] == doctest::Approx(4.0));
  }
}

TEST_CASE("Paddle's adam keeps its powers in the row and epsilon outside the correction") {
  // Source: Paddle's sparse_sgd_rule_test; the powers start at the betas.
  Row row(rule(UpdateRule::Kind::pow_adam, 0.1f), 10);
  row.push(one_to_ten());
  CHECK(row.values[0] == doctest::Approx(-0.0999999642f).epsilon(1e-7));
  CHECK(row.values[9] == doctest::Approx(-0.099999994f).epsilon(1e-7));
  for (std::size_t i = 0; i < 10; ++i) {
    const double g = static_cast<double>(i + 1);
    CHECK(row.state[i] == doctest::Approx(0.1 * g));
    CHECK(row.state[10 + i] == doctest::Approx(0.000999987 * g * g));
  }
  CHECK(row.state[20] == doctest::Approx(0.81));
  CHECK(row.state[21] == doctest::Approx(0.998001));
  // A row that the real Paddle 2.6.2 saved after one push of gradient -2 (facts: its accessor, observed).
  Row saved(rule(UpdateRule::Kind::pow_adam, 0.1f), 1);
  saved.push({-2.0f});
  CHECK(saved.values[0] == doctest::Approx(0.1));
  CHECK(saved.state[0] == doctest::Approx(-0.2));
  CHECK(saved.state[1] == doctest::Approx(0.00399995).epsilon(1e-6));
}

TEST_CASE("Paddle's shared adam keeps the means of a row's moments") {
  Row row(rule(UpdateRule::Kind::shared_adam, 0.1f), 2);
  row.push({1.0f, 3.0f});
  CHECK(row.values[0] == doctest::Approx(-0.1).epsilon(1e-5));
  CHECK(row.values[1] == doctest::Approx(-0.1).epsilon(1e-5));
  CHECK(row.state[0] == doctest::Approx(0.2));
  CHECK(row.state[1] == doctest::Approx(0.005).epsilon(1e-4));
  CHECK(row.state[2] == doctest::Approx(0.81));
  row.push({0.0f, 0.0f});
  CHECK(row.values[0] == doctest::Approx(row.values[1]));
}

TEST_CASE("momentum gathers speed, and Nesterov's looks ahead") {
  UpdateRule plain = rule(UpdateRule::Kind::momentum, 0.1f);
  plain.momentum = 0.5f;
  Row row(plain, 1);
  row.push({1.0f});
  CHECK(row.values[0] == doctest::Approx(-0.1));
  row.push({1.0f});
  CHECK(row.values[0] == doctest::Approx(-0.25));
  CHECK(row.state[0] == doctest::Approx(1.5));
  plain.nesterov = true;
  Row ahead(plain, 1);
  ahead.push({1.0f});
  CHECK(ahead.values[0] == doctest::Approx(-0.15));
  ahead.push({1.0f});
  CHECK(ahead.values[0] == doctest::Approx(-0.325));
}

namespace {

std::vector<float> ftrl(float rate, float accumulator, float l1, float l2, std::vector<float> values,
                        const std::vector<float>& gradient, int steps) {
  UpdateRule out = rule(UpdateRule::Kind::ftrl, rate);
  out.initial_accumulator = accumulator;
  out.l1 = l1;
  out.l2 = l2;
  Row row(out, values.size());
  row.values = std::move(values);
  for (int i = 0; i < steps; ++i) row.push(gradient);
  return row.values;
}

}  // namespace

TEST_CASE("ftrl gives TensorFlow's and Monolith's values") {
  // Source: TensorFlow's ftrl_test, without and with regularisation.
  const auto near = [](const std::vector<float>& values, double a, double b) {
    CHECK(values[0] == doctest::Approx(a).epsilon(1e-5));
    CHECK(values[1] == doctest::Approx(b).epsilon(1e-5));
  };
  near(ftrl(3.0f, 0.1f, 0, 0, {0, 0}, {0.1f, 0.2f}, 3), -2.60260963, -4.29698515);
  near(ftrl(3.0f, 0.1f, 0, 0, {0, 0}, {0.01f, 0.02f}, 3), -0.28432083, -0.56694895);
  near(ftrl(3.0f, 0.1f, 0.001f, 0, {1, 2}, {0.1f, 0.2f}, 10), -7.66718769, -10.91273689);
  near(ftrl(3.0f, 0.1f, 0.001f, 2, {1, 2}, {0.1f, 0.2f}, 10), -0.24059935, -0.46829352);
  // Source: Monolith's ftrl_optimizer_test.
  CHECK(ftrl(0.01f, 0.1f, 0, 0, {0}, {10.0f}, 1)[0] == doctest::Approx(-0.009995).epsilon(1e-5));
  CHECK(ftrl(0.01f, 0.1f, 0, 0, {0}, {10.0f}, 2)[0] == doctest::Approx(-0.0170643).epsilon(1e-5));
}

TEST_CASE("ftrl holds small weights at zero, and takes any power") {
  CHECK(ftrl(1.0f, 0.1f, 5, 0, {0}, {1.0f}, 3)[0] == 0.0f);
  UpdateRule other = rule(UpdateRule::Kind::ftrl, 1.0f);
  other.learning_rate_power = -1.0f;
  Row row(other, 1);
  row.push({2.0f});
  // n = 4, z = 2: w = -2 / 4.
  CHECK(row.values[0] == doctest::Approx(-0.5));
}

TEST_CASE("adagrad gives Monolith's values") {
  UpdateRule adagrad = rule(UpdateRule::Kind::adagrad, 0.1f);
  adagrad.initial_accumulator = 1.0f;
  adagrad.epsilon = 0.0f;
  Row row(adagrad, 2);
  row.push({1.0f, 2.0f});
  CHECK(row.values[0] == doctest::Approx(-0.07071067));
  CHECK(row.values[1] == doctest::Approx(-0.08944272));
}

TEST_CASE("decays pull values towards zero, and bounds hold them") {
  UpdateRule sgd = rule(UpdateRule::Kind::sgd, 0.1f);
  sgd.l2_decay = 0.5f;
  sgd.l1_decay = 0.25f;
  Row row(sgd, 3);
  row.values = {2.0f, -2.0f, 0.0f};
  row.push({0.0f, 0.0f, 0.0f});
  CHECK(row.values[0] == doctest::Approx(2.0 - 0.1 * 1.25));
  CHECK(row.values[1] == doctest::Approx(-2.0 + 0.1 * 1.25));
  CHECK(row.values[2] == 0.0f);
  UpdateRule bound = rule(UpdateRule::Kind::sgd, 1.0f);
  bound.low = -0.5f;
  bound.high = 0.25f;
  Row held(bound, 3);
  held.push({1.0f, -1.0f, 0.1f});
  CHECK(held.values[0] == -0.5f);
  CHECK(held.values[1] == 0.25f);
  CHECK(held.values[2] == doctest::Approx(-0.1));
}

// As MemoryDenseTable of Paddle 2.6.2 computes it, in float64.
TEST_CASE("adam_d2sum follows its sums of squares") {
  Row row(rule(UpdateRule::Kind::adam_d2sum, 0.05f), 2);
  double d = 0.0, s = 0.0, v = 0.0, w = 0.0;
  for (int step = 0; step < 20; ++step) {
    const double g = std::cos(step) + 0.5;
    d = d * 0.9999 + 1.0;
    s = s * 0.9999 + g * g;
    v = (v + g) * 0.99 - g;
    w += 0.05 * v * std::sqrt((d + d * 1e-8) / (s + d * 1e-8));
    row.push({static_cast<float>(g), 0.0f});
  }
  CHECK(row.values[0] == doctest::Approx(w).epsilon(1e-5));
  CHECK(row.values[1] == 0.0f);
  CHECK(row.state == std::vector<float>{row.state[1], row.state[1], row.state[2], 0.0f, row.state[4], 0.0f});
}

TEST_CASE("rmsprop, centered or not, adamax and adadelta follow their formulas in double precision") {
  const auto gradient = [](int step) { return std::cos(static_cast<double>(step)) + 0.5; };
  for (const bool centered : {false, true}) {
    UpdateRule rmsprop = rule(UpdateRule::Kind::rmsprop, 0.05f);
    rmsprop.centered = centered;
    rmsprop.rho = 0.75f;
    rmsprop.momentum = 0.5f;
    rmsprop.epsilon = 0.125f;
    Row row(rmsprop, 2);
    double s = 0.0, m = 0.0, v = 0.0, w = 0.0;
    for (int step = 1; step <= 20; ++step) {
      const double g = gradient(step);
      s = 0.75 * s + 0.25 * g * g;
      m = centered ? 0.75 * m + 0.25 * g : 0.0;
      v = 0.5 * v + 0.05 * g / std::sqrt(s - m * m + 0.125);
      w -= v;
      row.push({static_cast<float>(g), 0.0f});
    }
    CHECK(row.values[0] == doctest::Approx(w).epsilon(1e-5));
    CHECK(row.values[1] == 0.0f);
  }
  UpdateRule adadelta = rule(UpdateRule::Kind::adadelta, 0.5f);
  adadelta.rho = 0.75f;
  adadelta.epsilon = 0.125f;
  Row by_adadelta(adadelta, 1), by_adamax(rule(UpdateRule::Kind::adamax, 0.05f), 1);
  double s = 0.0, e = 0.0, w = 0.0, m = 0.0, u = 0.0, by_norm = 0.0;
  for (int step = 1; step <= 20; ++step) {
    const double g = gradient(step);
    s = 0.75 * s + 0.25 * g * g;
    const double d = std::sqrt((e + 0.125) / (s + 0.125)) * g;
    e = 0.75 * e + 0.25 * d * d;
    w -= 0.5 * d;
    by_adadelta.push({static_cast<float>(g)});
    m = 0.9 * m + 0.1 * g;
    u = std::max(std::fabs(g), 0.999 * u + 1e-8);
    by_norm -= 0.05 / (1.0 - std::pow(0.9, step)) * m / u;
    by_adamax.push({static_cast<float>(g)});
  }
  CHECK(by_adadelta.values[0] == doctest::Approx(w).epsilon(1e-5));
  CHECK(by_adamax.values[0] == doctest::Approx(by_norm).epsilon(1e-5));
}

TEST_CASE("adam decays values apart from the gradient, which its moments do not see") {
  UpdateRule adamw = rule(UpdateRule::Kind::adam, 0.125f);
  adamw.own_decay = 0.5f;
  Row row(adamw, 1), plain(rule(UpdateRule::Kind::adam, 0.125f), 1);
  row.values = {2.0f};
  row.push({4.0f});
  plain.push({4.0f});
  CHECK(row.values[0] == doctest::Approx(2.0 * (1.0 - 0.125 * 0.5) - 0.125));
  CHECK(row.state == plain.state);
}

// As DSummary of Paddle 2.6.2, whatever the learning rate.
TEST_CASE("summary adds up, and forgets slowly") {
  Row row(rule(UpdateRule::Kind::summary, 0.05f), 2);
  row.values = {1e4f, 0.0f, 0.0f};
  row.push({32.0f, -4.0f});
  row.push({32.0f, 1.0f});
  CHECK(row.values[0] == doctest::Approx((1e4 * 0.999999 + 32.0) * 0.999999 + 32.0).epsilon(1e-7));
  CHECK(row.values[1] == doctest::Approx(-4.0 * 0.999999 + 1.0));
  CHECK(row.state.empty());
}

TEST_CASE("a scheduled rule takes the push's rate, and another one does not") {
  for (std::size_t kind = 0; kind < std::size(kUpdateRules); ++kind) {
    UpdateRule whole = rule(static_cast<UpdateRule::Kind>(kind), 0.25f);
    if (whole.kind == UpdateRule::Kind::sum || whole.kind == UpdateRule::Kind::summary) continue;
    whole.initial_accumulator = 0.5f;
    UpdateRule parted = whole;
    parted.learning_rate = 1.0f;
    parted.is_scheduled = true;
    Row as_number(whole, 3), by_schedule(parted, 3);
    for (std::uint32_t step = 1; step <= 5; ++step) {
      const std::vector<float> gradient{1.0f, -2.0f, std::sin(static_cast<float>(step))};
      as_number.updater.apply(as_number.values.data(), as_number.state.data(), gradient.data(), 3, step, 1.0f,
                              0.125f);
      by_schedule.updater.apply(by_schedule.values.data(), by_schedule.state.data(), gradient.data(), 3, step,
                                1.0f, 0.25f);
    }
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(by_schedule.values[i] == doctest::Approx(as_number.values[i]).epsilon(1e-6));
  }
}

TEST_CASE("a dense table's run moves as a row does, whatever the rule") {
  for (std::size_t kind = 0; kind < std::size(kUpdateRules); ++kind) {
    UpdateRule both = rule(static_cast<UpdateRule::Kind>(kind), 0.1f);
    if (!Updater::is_for_dense(both.kind)) continue;
    both.initial_accumulator = 0.3f;
    both.l2_decay = 0.01f;
    both.high = 1000.0f;
    Row row(both, 7);
    std::vector<float> values(7, 0.0f);
    std::vector<float> state(7 * row.updater.dense_state_floats());
    row.updater.reset_dense(state);
    for (std::uint32_t step = 1; step <= 50; ++step) {
      const std::vector<float> gradient(7, std::sin(static_cast<float>(step)));
      row.push(gradient);
      row.updater.apply_dense(values.data(), state.data(), gradient.data(), 7, step);
    }
    for (std::size_t i = 0; i < 7; ++i) CHECK(values[i] == doctest::Approx(row.values[i]).epsilon(1e-4));
  }
}
