#include "runtime/engine/operators/matrix_product.h"

#include <filesystem>
#include <iterator>
#include <vector>

#include <omp.h>

#include <doctest/doctest.h>

using namespace fleetrun::engine;

TEST_CASE("products of every orientation") {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};  // 2x3, or 3x2 transposed
  const std::vector<float> b = {1, 0, 2, 1, 0, 1};  // 3x2, or 2x3 transposed
  std::vector<float> c(4);
  multiply({.rows = 2, .columns = 2, .inner = 3}, a.data(), b.data(), c.data());
  CHECK(c == std::vector<float>{5, 5, 14, 11});
  multiply({.transpose_a = true, .rows = 2, .columns = 2, .inner = 3}, a.data(), b.data(), c.data());
  CHECK(c == std::vector<float>{7, 8, 10, 10});
  multiply({.transpose_b = true, .rows = 2, .columns = 2, .inner = 3}, a.data(), b.data(), c.data());
  CHECK(c == std::vector<float>{7, 4, 16, 10});
  multiply({.transpose_a = true, .transpose_b = true, .rows = 2, .columns = 2, .inner = 3}, a.data(),
           b.data(), c.data());
  CHECK(c == std::vector<float>{11, 6, 14, 8});
  multiply({.rows = 2, .columns = 2, .inner = 3, .accumulate = true}, a.data(), b.data(), c.data());
  CHECK(c == std::vector<float>{16, 11, 28, 19});
  multiply({.rows = 2, .columns = 2, .inner = 3, .accumulate = true, .scale = -2.0f}, a.data(), b.data(),
           c.data());
  CHECK(c == std::vector<float>{6, 1, 0, -3});
  multiply({.rows = 2, .columns = 2, .inner = 3, .scale = 0.5f}, a.data(), b.data(), c.data());
  CHECK(c == std::vector<float>{2.5f, 2.5f, 7, 5.5f});
  multiply({.rows = 2, .columns = 2, .inner = 0}, a.data(), b.data(), c.data());
  CHECK(c == std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("few rows times a transposed matrix, in any way that is chosen for it") {
  for (const std::size_t rows : {15, 16, 17, 32, 48, 49, 64}) {
    for (const std::size_t columns : {20, 50, 416, 417, 900}) {
      CAPTURE(rows);
      CAPTURE(columns);
      constexpr std::size_t kInner = 70;
      // Whole numbers, so that every order of adding up gives the same.
      std::vector<float> a(rows * kInner), b(columns * kInner), c(rows * columns), expected(rows * columns);
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3.0f;
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2.0f;
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t k = 0; k < columns; ++k) {
          for (std::size_t i = 0; i < kInner; ++i)
            expected[r * columns + k] += 3.0f * a[r * kInner + i] * b[k * kInner + i];
        }
      }
      multiply({.transpose_b = true, .rows = rows, .columns = columns, .inner = kInner, .scale = 3.0f},
               a.data(), b.data(), c.data());
      CHECK(c == expected);
    }
  }
}

TEST_CASE("a product starts no threads, and leaves the caller's OpenMP setting alone") {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  const int before = omp_get_max_threads();
  omp_set_num_threads(4);
  const auto at_start = threads();
  const std::vector<float> a(400 * 400, 1.0f);
  std::vector<float> c(400 * 400);
  multiply({.rows = 400, .columns = 400, .inner = 400}, a.data(), a.data(), c.data());
  CHECK(c[399] == 400.0f);
  CHECK(threads() == at_start);
  CHECK(omp_get_max_threads() == 4);
  omp_set_num_threads(before);
}
