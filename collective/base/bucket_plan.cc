#include "collective/base/bucket_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

namespace fleetrun::collective {

namespace {

using Bucket = std::vector<std::size_t>;

constexpr double kMebibyte = 1024.0 * 1024.0;

std::vector<std::size_t> dense_ones(std::span<const GradientShape> gradients) {
  std::vector<std::size_t> dense;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].sparse) dense.push_back(i);
  }
  return dense;
}

std::vector<Bucket> by_layer(std::span<const GradientShape> gradients,
                             const std::vector<std::size_t>& dense) {
  std::vector<Bucket> layers;
  std::map<std::string_view, std::size_t> place;
  for (const std::size_t index : dense) {
    const std::string_view name = gradients[index].parameter;
    const auto [found, is_new] = place.emplace(name.substr(0, name.find('.')), layers.size());
    if (is_new) layers.emplace_back();
    layers[found->second].push_back(index);
  }
  return layers;
}

std::vector<Bucket> join(std::span<const GradientShape> gradients, const std::vector<Bucket>& layers,
                         const BucketRule& rule) {
  std::vector<Bucket> buckets;
  bool is_full = true;
  std::size_t bytes = 0;
  for (const Bucket& layer : layers) {
    if (is_full) {
      buckets.emplace_back();
      bytes = 0;
    }
    Bucket& bucket = buckets.back();
    bucket.insert(bucket.end(), layer.begin(), layer.end());
    for (const std::size_t index : layer) bytes += gradients[index].bytes();
    const bool has_many = rule.groups_size > 1 && bucket.size() > static_cast<std::size_t>(rule.groups_size);
    is_full = has_many || static_cast<double>(bytes) / kMebibyte >= rule.memory_mib;
  }
  return buckets;
}

std::vector<Bucket> by_type(std::span<const GradientShape> gradients, const std::vector<Bucket>& buckets) {
  std::vector<Bucket> parts;
  for (const Bucket& bucket : buckets) {
    std::map<DataType, std::size_t> place;
    for (const std::size_t index : bucket) {
      const auto [found, is_new] = place.emplace(gradients[index].type, parts.size());
      if (is_new) parts.emplace_back();
      parts[found->second].push_back(index);
    }
  }
  return parts;
}

}  // namespace

std::vector<std::vector<std::size_t>> plan_buckets(std::span<const GradientShape> gradients,
                                                   const BucketRule& rule) {
  std::vector<std::size_t> dense = dense_ones(gradients);
  if (dense.empty()) return {};
  if (rule.memory_mib == 0.0) {
    std::ranges::stable_sort(
        dense, {}, [&](std::size_t index) -> const std::string& { return gradients[index].parameter; });
    return by_type(gradients, {std::move(dense)});
  }
  std::vector<Bucket> buckets = by_layer(gradients, dense);
  if (rule.memory_mib > 0.0) buckets = join(gradients, buckets, rule);
  return by_type(gradients, buckets);
}

}  // namespace fleetrun::collective
