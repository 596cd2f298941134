// A program of its own, because it replaces operator new:
// once buffers have their size, a step allocates nothing.

#include <atomic>
#include <cstdlib>
#include <new>
#include <set>

#include <doctest/doctest.h>

#include "runtime/engine/passes/passes.h"
#include "tests/support/ctr_model.h"

namespace {

std::atomic<std::size_t> allocations{0};

void* allocate(std::size_t size, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  if (void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate(size, alignof(std::max_align_t));
}
void* operator new[](std::size_t size) {
  return allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

struct ConstantRows final : RowSource {
  void pull_rows(const std::string&, std::span<const std::uint64_t>, std::span<float> rows) override {
    std::fill(rows.begin(), rows.end(), 0.01f);
  }
};

using ByType = std::map<std::string, std::size_t>;

/// Allocations of 100 steps behind 10, by the type of operator.
ByType count(const Program& program, Scope& scope, RowSource* rows, const std::vector<CtrFeed>& feeds) {
  Executor executor(program, scope, rows);
  for (std::size_t i = 0; i < 10; ++i) executor.run(feeds[i % feeds.size()]);

  std::vector<std::size_t> by_operator(program.operators().size() + 1, 0);
  std::size_t at = 0, seen = 0;
  const std::function<void(std::size_t)> before = [&](std::size_t index) {
    by_operator[at] += allocations - seen;
    seen = allocations;
    at = index + 1;
  };
  for (std::size_t i = 0; i < 100; ++i) {
    at = 0;
    seen = allocations;
    executor.run_with(feeds[i % feeds.size()], before);
    by_operator[at] += allocations - seen;
  }
  ByType by_type;
  for (std::size_t i = 0; i < by_operator.size(); ++i) {
    if (by_operator[i] > 0) by_type[i == 0 ? "feed" : program.operators()[i - 1].type] += by_operator[i];
  }
  return by_type;
}

ByType count(const CtrShape& shape, const OptimizerConfig& optimizer) {
  const CtrModel model(shape, optimizer);
  Scope scope;
  Executor(model.startup, scope).run({});
  ConstantRows rows;
  const auto batches = ctr_batches(shape, 5, 64);
  std::vector<CtrFeed> feeds;
  for (const auto& batch : batches) feeds.push_back(feed_of(batch));
  return count(optimize(model.main, {"loss"}), scope, shape.outside ? &rows : nullptr, feeds);
}

std::string text_of(const std::map<std::string, std::size_t>& by_type) {
  std::string text;
  for (const auto& [type, found] : by_type) text += type + ": " + std::to_string(found) + " ";
  return text;
}

CtrShape small_shape() {
  CtrShape shape;
  shape.slots = 4;
  shape.rows = 1000;
  shape.layers = {32, 16};
  return shape;
}

}  // namespace

TEST_CASE("what counts allocations does count") {
  const std::size_t before = allocations;
  CHECK(std::vector<int>(100).size() == 100);
  CHECK(allocations > before);
}

TEST_CASE("100 steps of one id in each slot allocate nothing") {
  CHECK(text_of(count(small_shape(), {})) == "");
  CHECK(text_of(count(small_shape(), {.kind = OptimizerConfig::Kind::adam, .lazy_rows = true})) == "");
}

TEST_CASE("100 steps of pooled ids allocate nothing") {
  CtrShape shape = small_shape();
  shape.pooled = true;
  CHECK(text_of(count(shape, {})) == "");
}

TEST_CASE("100 steps with rows from outside allocate nothing") {
  CtrShape shape = small_shape();
  shape.outside = true;
  CHECK(text_of(count(shape, {})) == "");
}

TEST_CASE("100 steps of convolutions and pools allocate nothing") {
  Program program, startup;
  Scope scope;
  add_data(program, "x", DataType::float32, {-1, 2, 6, 6});
  add_parameter(program, scope, "filter", floats({4, 2, 3, 3}, std::vector<float>(72, 0.25f)));
  add_parameter(program, scope, "bias", floats({4}, {0, 1, 2, 3}));
  const std::vector<std::int64_t> two{2, 2};
  add(program, "conv2d", {"x", "filter", "bias"}, "z", {{"paddings", std::vector<std::int64_t>(4, 1)}});
  program.append({"max_pool2d", {"z"}, {"largest", "mask"}, {{"ksize", two}, {"strides", two}}});
  add(program, "avg_pool2d", {"largest"}, "means", {{"ksize", two}});
  add(program, "mean", {"means"}, "loss");
  minimize(program, startup, "loss", {});
  Executor(startup, scope).run({});
  const Tensor x = floats({8, 2, 6, 6}, std::vector<float>(576, 0.5f));
  CHECK(text_of(count(optimize(program, {"loss"}), scope, nullptr, {{{"x", &x}}})) == "");
}
