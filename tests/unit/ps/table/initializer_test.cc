#include "ps/table/initializer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace fleetrun::ps;

namespace {

constexpr std::size_t kRows = 40000;
constexpr std::size_t kWidth = 5;

std::vector<float> sample(const Initializer& initializer, const char* name = "emb") {
  const RowInitializer rows(initializer, name);
  std::vector<float> values(kRows * kWidth);
  for (std::size_t key = 0; key < kRows; ++key)
    rows.fill(key, std::span(values).subspan(key * kWidth, kWidth));
  return values;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double kurtosis = 0;
};

Moments moments(const std::vector<float>& values) {
  Moments out;
  for (const float v : values) out.mean += v;
  out.mean /= static_cast<double>(values.size());
  double second = 0;
  double fourth = 0;
  for (const float v : values) {
    const double d = (v - out.mean) * (v - out.mean);
    second += d;
    fourth += d * d;
  }
  second /= static_cast<double>(values.size());
  out.deviation = std::sqrt(second);
  out.kurtosis = fourth / static_cast<double>(values.size()) / (second * second);
  return out;
}

// Between neighbours `apart` floats from each other.
double correlation(const std::vector<float>& values, std::size_t apart) {
  const Moments m = moments(values);
  double sum = 0;
  for (std::size_t i = 0; i + apart < values.size(); ++i)
    sum += (values[i] - m.mean) * (values[i + apart] - m.mean);
  return sum / static_cast<double>(values.size() - apart) / (m.deviation * m.deviation);
}

}  // namespace

TEST_CASE("constant rows are constant") {
  const auto values = sample({Initializer::Kind::constant, 0.5, 0.0, 9});
  CHECK(std::all_of(values.begin(), values.end(), [](float v) { return v == 0.5f; }));
}

TEST_CASE("uniform rows have the moments of their range and stay in it") {
  const auto values = sample({Initializer::Kind::uniform, -1.0, 3.0, 9});
  const Moments m = moments(values);
  CHECK(m.mean == doctest::Approx(1.0).epsilon(0.01));
  CHECK(m.deviation == doctest::Approx(4.0 / std::sqrt(12.0)).epsilon(0.01));
  CHECK(m.kurtosis == doctest::Approx(1.8).epsilon(0.02));
  CHECK(*std::min_element(values.begin(), values.end()) >= -1.0f);
  CHECK(*std::max_element(values.begin(), values.end()) <= 3.0f);
}

TEST_CASE("normal rows have the moments asked for") {
  const Moments m = moments(sample({Initializer::Kind::normal, 2.0, 0.5, 9}));
  CHECK(m.mean == doctest::Approx(2.0).epsilon(0.005));
  CHECK(m.deviation == doctest::Approx(0.5).epsilon(0.01));
  CHECK(m.kurtosis == doctest::Approx(3.0).epsilon(0.03));
}

TEST_CASE("truncated normal rows end at two standard deviations") {
  const auto values = sample({Initializer::Kind::truncated_normal, 1.0, 0.1, 9});
  const Moments m = moments(values);
  CHECK(m.mean == doctest::Approx(1.0).epsilon(0.005));
  // A normal distribution cut at two standard deviations keeps 0.87963 of its deviation.
  CHECK(m.deviation == doctest::Approx(0.087963).epsilon(0.01));
  CHECK(*std::min_element(values.begin(), values.end()) >= 0.8f - 1e-6f);
  CHECK(*std::max_element(values.begin(), values.end()) <= 1.2f + 1e-6f);
}

TEST_CASE("neighbouring columns and keys are not correlated") {
  const auto values = sample({Initializer::Kind::normal, 0.0, 1.0, 1});
  for (const std::size_t apart : {1, 2, 5, 10}) CHECK(std::abs(correlation(values, apart)) < 0.01);
}

TEST_CASE("seed, table name and key each change the values; the order of calls does not") {
  const Initializer uniform{Initializer::Kind::uniform, 0.0, 1.0, 1};
  Initializer other_seed = uniform;
  other_seed.seed = 2;
  const auto values = sample(uniform);
  CHECK(values == sample(uniform));
  CHECK(values != sample(other_seed));
  CHECK(values != sample(uniform, "other"));
  const RowInitializer rows(uniform, "emb");
  std::vector<float> row(kWidth);
  rows.fill(kRows - 1, row);
  CHECK(std::equal(row.begin(), row.end(), values.end() - kWidth));
  // A wider table starts with the same columns.
  std::vector<float> wide(2 * kWidth);
  rows.fill(kRows - 1, wide);
  CHECK(std::equal(row.begin(), row.end(), wide.begin()));
}
