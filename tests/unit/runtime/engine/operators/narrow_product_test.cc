#include "runtime/engine/operators/narrow_product.h"

#include <vector>

#include <doctest/doctest.h>

using namespace fleetrun::engine;

namespace {

/// Whole numbers, so that every order of adding up gives the same.
std::vector<float> whole(std::size_t size, int period) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i)
    values[i] = static_cast<float>(static_cast<int>(i) % period - period / 2);
  return values;
}

std::vector<float> plain(const MatrixProduct& p, const std::vector<float>& a, const std::vector<float>& b,
                         std::vector<float> c) {
  for (std::size_t r = 0; r < p.rows; ++r) {
    for (std::size_t k = 0; k < p.columns; ++k) {
      float sum = 0;
      for (std::size_t i = 0; i < p.inner; ++i) {
        sum += a[p.transpose_a ? i * p.rows + r : r * p.inner + i] *
               b[p.transpose_b ? k * p.inner + i : i * p.columns + k];
      }
      float& to = c[r * p.columns + k];
      to = p.accumulate ? to + p.scale * sum : p.scale * sum;
    }
  }
  return c;
}

void check(const MatrixProduct& p) {
  CAPTURE(p.transpose_a);
  CAPTURE(p.transpose_b);
  CAPTURE(p.rows);
  CAPTURE(p.columns);
  CAPTURE(p.inner);
  REQUIRE(is_narrow(p));
  const auto a = whole(p.rows * p.inner, 7), b = whole(p.inner * p.columns, 5);
  auto c = whole(p.rows * p.columns, 3);
  const auto expected = plain(p, a, b, c);
  multiply_narrow(p, a.data(), b.data(), c.data());
  CHECK(c == expected);
}

}  // namespace

TEST_CASE("a layer and its gradients, of every width and of lengths around a piece") {
  for (const std::size_t wide : {1, 2, 3, 4}) {
    for (const std::size_t length : {1, 15, 17, 512, 513, 1030}) {
      for (const float scale : {1.0f, -2.0f}) {
        check({.transpose_b = true, .rows = 5, .columns = length, .inner = wide, .scale = scale});
        for (const bool accumulate : {false, true}) {
          check({.transpose_a = true,
                 .rows = length,
                 .columns = wide,
                 .inner = 6,
                 .accumulate = accumulate,
                 .scale = scale});
          if (wide == 1) continue;
          check({.rows = 5, .columns = wide, .inner = length, .accumulate = accumulate, .scale = scale});
        }
      }
    }
  }
}

TEST_CASE("other products are the library's") {
  CHECK(!is_narrow({.rows = 9, .columns = 5, .inner = 9}));
  CHECK(!is_narrow({.rows = 9, .columns = 1, .inner = 9}));
  CHECK(!is_narrow({.transpose_a = true, .rows = 9, .columns = 5, .inner = 9}));
  CHECK(!is_narrow({.transpose_b = true, .rows = 9, .columns = 2, .inner = 5}));
  CHECK(!is_narrow({.transpose_b = true, .rows = 9, .columns = 9, .inner = 2, .accumulate = true}));
  CHECK(!is_narrow({.transpose_a = true, .transpose_b = true, .rows = 2, .columns = 2, .inner = 2}));
}
