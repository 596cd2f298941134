#include "runtime/engine/matrix_product.h"

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
  multiply({.rows = 2, .columns = 2, .inner = 0}, a.data(), b.data(), c.data());
  CHECK(c == std::vector<float>{0, 0, 0, 0});
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
