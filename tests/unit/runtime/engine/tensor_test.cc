#include "runtime/engine/tensor.h"

#include <bit>

#include <doctest/doctest.h>

using namespace fleetrun::engine;

TEST_CASE("a tensor of any size is aligned, and can be written from its first value to its last") {
  // The last has pages of its own, and some bytes before and behind them.
  for (const std::int64_t size : {1, 1000, 5'000'001}) {
    Tensor tensor(DataType::float32, {size});
    CHECK(std::bit_cast<std::uintptr_t>(tensor.data()) % 64 == 0);
    const auto values = tensor.values<float>();
    REQUIRE(values.size() == static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
    float wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      wrong += values[i] == static_cast<float>(i % 1000) ? 0.0f : 1.0f;
    CHECK(wrong == 0.0f);
  }
}

TEST_CASE("a tensor that becomes smaller and large again keeps its memory") {
  Tensor tensor(DataType::int64, {5'000'000});
  const void* const before = tensor.data();
  tensor.resize(DataType::int64, {3});
  tensor.resize(DataType::float32, {1000, 10'000});
  CHECK(tensor.data() == before);
}
