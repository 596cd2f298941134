// The result depends on the order of contributions only, which is fixed: distinct keys are found in that
// order and each row's gradients are added in that order, so two runs give the same bits.
#include "ps/sync_step.h"

#include <map>
#include <span>

#include "ps/key_groups.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

struct SparsePart {
  std::span<const std::uint64_t> keys;
  std::span<const float> gradients;
};

struct SparseSum {
  std::vector<std::uint64_t> keys;
  std::vector<float> gradients;
};

SparseSum average(const std::vector<SparsePart>& parts, std::size_t width, float pushes) {
  std::vector<std::uint64_t> keys;
  std::vector<float> gradients;
  for (const SparsePart& part : parts) {
    keys.insert(keys.end(), part.keys.begin(), part.keys.end());
    gradients.insert(gradients.end(), part.gradients.begin(), part.gradients.end());
  }
  KeyGroups groups = group_keys(keys, 1);
  SparseSum out;
  out.gradients.resize(groups.keys.size() * width);
  float* to = out.gradients.data();
  sum_by_group(groups, gradients, width, {&to, 1});
  out.keys = std::move(groups.keys);
  for (float& value : out.gradients) value /= pushes;
  return out;
}

std::vector<float> average(const std::vector<std::span<const float>>& parts, float pushes) {
  std::vector<float> sum(parts.front().begin(), parts.front().end());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += parts[i][c];
  }
  for (float& value : sum) value /= pushes;
  return sum;
}

void check_sum(const TableConfig& config, std::span<const float> values) {
  if (are_finite(values)) return;
  throw Error(ErrorKind::data, "table '" + config.name + "': the gradients of a step add up to infinity",
              "lower the learning rate");
}

}  // namespace

void apply_averaged(const std::vector<Contribution>& step, TableSet& tables) {
  if (step.size() == 1) return tables.apply(*step.front().push);
  std::map<std::uint32_t, std::vector<SparsePart>> sparse_parts;
  std::map<std::uint32_t, std::vector<std::span<const float>>> dense_parts;
  for (const Contribution& contribution : step) {
    const wire::PushRequest& push = *contribution.push;
    for (std::size_t i = 0; i < push.keys.size(); ++i) {
      sparse_parts[push.sections.sparse[i].table].push_back({push.keys[i], push.gradients[i]});
    }
    for (std::size_t i = 0; i < push.dense.size(); ++i) {
      dense_parts[push.sections.dense[i].table].push_back(push.dense[i]);
    }
  }
  const auto pushes = static_cast<float>(step.size());
  std::map<std::uint32_t, SparseSum> sparse_sums;
  std::map<std::uint32_t, std::vector<float>> dense_sums;
  for (const auto& [id, parts] : sparse_parts) {
    const TableConfig& config = tables.sparse(id).config();
    const auto& sum = sparse_sums.emplace(id, average(parts, config.width, pushes)).first->second;
    check_sum(config, sum.gradients);
  }
  for (const auto& [id, parts] : dense_parts) {
    const auto& sum = dense_sums.emplace(id, average(parts, pushes)).first->second;
    check_sum(tables.dense(id).config(), sum);
  }
  const MemoryBudget::Stay staying = tables.stay();
  for (const auto& [id, sum] : sparse_sums) tables.sparse(id).warm(sum.keys);
  for (const auto& [id, sum] : sparse_sums) tables.sparse(id).push(sum.keys, sum.gradients.data());
  for (const auto& [id, sum] : dense_sums) tables.dense(id).push(sum);
}

}  // namespace fleetrun::ps
