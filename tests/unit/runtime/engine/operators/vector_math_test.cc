#include "runtime/engine/operators/vector_math.h"

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

using namespace fleetrun::engine;

namespace {

/// Units in the last place between `value` and the true one.
double distance(float value, double exact) {
  const auto rounded = static_cast<float>(exact);
  const double unit =
      std::abs(static_cast<double>(std::nextafter(rounded, INFINITY)) - static_cast<double>(rounded));
  return std::abs(static_cast<double>(value) - exact) / unit;
}

template <class F>
std::vector<float> run_vectorized(const std::vector<float>& x, const F& f) {
  std::vector<float> y(x.size());
  const float* from = x.data();
  float* to = y.data();
  const std::size_t size = x.size();
  vectorized([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < size; ++i) to[i] = f(from[i]);
  });
  return y;
}

}  // namespace

TEST_CASE("exp, log, sigmoid and tanh are within a few units in the last place") {
  std::vector<float> any, positive;
  for (int i = -8700; i <= 8800; ++i) any.push_back(static_cast<float>(i) * 0.01f);
  for (int i = -120; i <= 120; ++i)
    positive.push_back(std::ldexp(1.0f + static_cast<float>(i & 7) / 9.0f, i));
  const auto e = run_vectorized(
      any, [](float x) __attribute__((always_inline)) { return vector_math::exp(x); });
  const auto s = run_vectorized(
      any, [](float x) __attribute__((always_inline)) { return vector_math::sigmoid(x); });
  const auto t = run_vectorized(
      any, [](float x) __attribute__((always_inline)) { return vector_math::tanh(x); });
  const auto l = run_vectorized(
      positive, [](float x) __attribute__((always_inline)) { return vector_math::log(x); });
  double worst_exp = 0, worst_sigmoid = 0, worst_tanh = 0, worst_log = 0;
  for (std::size_t i = 0; i < any.size(); ++i) {
    const auto x = static_cast<double>(any[i]);
    worst_exp = std::max(worst_exp, distance(e[i], std::exp(x)));
    worst_sigmoid = std::max(worst_sigmoid, distance(s[i], 1.0 / (1.0 + std::exp(-x))));
    worst_tanh = std::max(worst_tanh, distance(t[i], std::tanh(x)));
  }
  for (std::size_t i = 0; i < positive.size(); ++i) {
    worst_log = std::max(worst_log, distance(l[i], std::log(static_cast<double>(positive[i]))));
  }
  CHECK(worst_exp < 2.0);
  CHECK(worst_log < 3.0);
  CHECK(worst_sigmoid < 3.0);
  CHECK(worst_tanh < 4.0);
}

TEST_CASE("the ends of the number line come out as in cmath") {
  CHECK(vector_math::exp(-INFINITY) == 0.0f);
  CHECK(vector_math::exp(INFINITY) == INFINITY);
  CHECK(std::isnan(vector_math::exp(NAN)));
  CHECK(vector_math::log(0.0f) == -INFINITY);
  CHECK(std::isnan(vector_math::log(-1.0f)));
  CHECK(vector_math::log(INFINITY) == INFINITY);
  CHECK(std::isnan(vector_math::log(NAN)));
  CHECK(vector_math::log(1e-40f) == doctest::Approx(std::log(1e-40)).epsilon(1e-5));
  CHECK(vector_math::sigmoid(-200.0f) == 0.0f);
  CHECK(vector_math::sigmoid(200.0f) == 1.0f);
  CHECK(vector_math::tanh(-200.0f) == -1.0f);
}

TEST_CASE("sum_of adds what a plain loop adds") {
  std::vector<float> x;
  for (int i = 0; i < 1003; ++i) x.push_back(static_cast<float>(i % 13));
  double expected = 0;
  for (const float value : x) expected += static_cast<double>(value);
  CHECK(sum_of(x.data(), x.size()) == doctest::Approx(expected));
  CHECK(sum_of(x.data(), 0) == 0.0f);
}
