#include "collective/base/bucket_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace fleetrun::collective {
namespace {

using Plan = std::vector<std::vector<std::size_t>>;

std::vector<GradientShape> resnet50() {
  std::ifstream file(FLEETRUN_TESTS "/golden/collective/resnet50_parameters.txt");
  REQUIRE(file);
  std::vector<GradientShape> gradients;
  for (GradientShape gradient; file >> gradient.parameter >> gradient.count;) gradients.push_back(gradient);
  return gradients;
}

std::vector<std::size_t> sizes_of(const Plan& plan) {
  std::vector<std::size_t> sizes;
  for (const auto& bucket : plan) sizes.push_back(bucket.size());
  return sizes;
}

std::size_t count_of_mib(double mib) {
  return static_cast<std::size_t>(mib * 1024 * 1024 / 4);
}

/// The rule said another way: each layer's bucket is decided by looking at what lies before it,
/// again and again.
Plan plan_by_looking_back(const std::vector<GradientShape>& gradients, const BucketRule& rule) {
  std::vector<std::string> layers;
  for (const GradientShape& gradient : gradients) {
    const std::string layer = gradient.parameter.substr(0, gradient.parameter.find('.'));
    if (!gradient.sparse && !std::ranges::count(layers, layer)) layers.push_back(layer);
  }
  Plan plan;
  std::size_t begin = 0;  // the first layer of the bucket under way
  for (std::size_t end = 1; end <= layers.size(); ++end) {
    std::vector<std::size_t> bucket;
    double bytes = 0;
    for (std::size_t layer = begin; layer < end; ++layer) {
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (gradients[i].sparse ||
            gradients[i].parameter.substr(0, gradients[i].parameter.find('.')) != layers[layer])
          continue;
        bucket.push_back(i);
        bytes += static_cast<double>(gradients[i].bytes());
      }
    }
    const bool ends = end == layers.size() || rule.memory_mib < 0 || bytes >= rule.memory_mib * 1048576.0 ||
                      (rule.groups_size > 1 && static_cast<int>(bucket.size()) > rule.groups_size);
    if (!ends) continue;
    begin = end;
    for (; !bucket.empty();) {
      const DataType type = gradients[bucket.front()].type;
      auto& part = plan.emplace_back();
      std::ranges::copy_if(bucket, std::back_inserter(part),
                           [&](std::size_t i) { return gradients[i].type == type; });
      std::erase_if(bucket, [&](std::size_t i) { return gradients[i].type == type; });
    }
  }
  return plan;
}

TEST_CASE("ResNet-50's 161 gradients become 5 buckets with 32 MiB and 50 gradients, in either order") {
  std::vector<GradientShape> gradients = resnet50();
  REQUIRE(gradients.size() == 161);
  CHECK(plan_buckets(gradients, {32.0, 50}).size() == 5);
  std::ranges::reverse(gradients);  // as backward makes them
  CHECK(plan_buckets(gradients, {32.0, 50}).size() == 5);
}

TEST_CASE("without a limit each of ResNet-50's 107 layers is a bucket, weight and bias together") {
  const auto gradients = resnet50();
  const Plan plan = plan_buckets(gradients, {});
  CHECK(plan.size() == 107);
  CHECK(plan[0] == std::vector<std::size_t>{0});
  CHECK(plan[1] == std::vector<std::size_t>{1, 2});
}

TEST_CASE("a memory size of 0 is one bucket, in the order of names") {
  const std::vector<GradientShape> gradients = {{"fc_2.w_0", 4}, {"fc_10.b_0", 1}, {"fc_10.a_0", 2}};
  CHECK(plan_buckets(gradients, {0.0, 1}) == Plan{{2, 1, 0}});
}

TEST_CASE("limits are looked at after a layer was added, so a bucket exceeds them") {
  std::vector<GradientShape> gradients;
  for (int i = 0; i < 6; ++i) gradients.push_back({"fc_" + std::to_string(i) + ".w_0", count_of_mib(0.75)});
  CHECK(sizes_of(plan_buckets(gradients, {1.0, 1})) == std::vector<std::size_t>{2, 2, 2});
  // More than 2, so 3; a cap of 1 is none.
  CHECK(sizes_of(plan_buckets(gradients, {100.0, 2})) == std::vector<std::size_t>{3, 3});
  CHECK(sizes_of(plan_buckets(gradients, {100.0, 1})) == std::vector<std::size_t>{6});
  // Exactly the size is full.
  CHECK(sizes_of(plan_buckets(gradients, {1.5, 1})) == std::vector<std::size_t>{2, 2, 2});
}

TEST_CASE("a layer that comes back later joins its first part") {
  const std::vector<GradientShape> gradients = {{"a.w", 1}, {"b.w", 1}, {"a.b", 1}, {"plain", 1}};
  CHECK(plan_buckets(gradients, {}) == Plan{{0, 2}, {1}, {3}});
}

TEST_CASE("sparse gradients are in no bucket, and types lie apart") {
  const std::vector<GradientShape> gradients = {
      {"a.w", 1}, {"rows.w", 1, DataType::float32, true}, {"b.w", 1, DataType::float16}, {"c.w", 1}};
  CHECK(plan_buckets(gradients, {0.0, 1}) == Plan{{0, 3}, {2}});
  CHECK(plan_buckets(gradients, {100.0, 1}) == Plan{{0, 3}, {2}});
  CHECK(plan_buckets(std::vector<GradientShape>{{"rows.w", 1, DataType::float32, true}}, {}).empty());
  CHECK(plan_buckets({}, {}).empty());
}

TEST_CASE("any list gives the groups that the rule gives when it is followed naively") {
  std::mt19937 random(7);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  const std::array memory = {-1.0, 0.25, 0.5, 1.0, 16.0};
  const std::array groups = {-1, 1, 2, 5};
  for (int round = 0; round < 500; ++round) {
    std::vector<GradientShape> gradients;
    for (int i = below(40); i > 0; --i) {
      gradients.push_back({"layer_" + std::to_string(below(12)) + (below(5) ? ".w_" + std::to_string(i) : ""),
                           static_cast<std::size_t>(below(300000)),
                           (below(3) ? DataType::float32 : DataType::float16), below(9) == 0});
    }
    const BucketRule rule = {memory[static_cast<std::size_t>(below(5))],
                             groups[static_cast<std::size_t>(below(4))]};
    const Plan plan = plan_buckets(gradients, rule);
    CHECK(plan == plan_by_looking_back(gradients, rule));
    std::multiset<std::size_t> planned, dense;
    for (const auto& bucket : plan_buckets(gradients, {0.0, 1})) planned.insert(bucket.begin(), bucket.end());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].sparse) dense.insert(i);
    }
    CHECK(planned == dense);
  }
}

}  // namespace
}  // namespace fleetrun::collective
