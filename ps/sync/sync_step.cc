// The result depends on the order of contributions only, which is fixed: distinct keys are found in that
// order and each row's gradients are added in that order, so two runs give the same bits.
#include "ps/sync/sync_step.h"

#include <map>
#include <span>

#include "ps/base/key_groups.h"
#include "ps/table/push_values.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

struct SparsePart {
  std::span<const std::uint64_t> keys;
  std::span<const float> gradients;
  PushStatistics statistics;
};

struct SparseSum {
  std::vector<std::uint64_t> keys;
  std::vector<float> gradients;
  // Of tables with statistics: sums, whatever the number of pushes.
  std::vector<float> shows;
  std::vector<float> clicks;
  std::uint16_t slot = 0;
};

// Shows and clicks of all positions, in their order; a key without any has one show.
void sum_counts(const std::vector<SparsePart>& parts, const KeyGroups& groups, SparseSum& out) {
  std::vector<float> shows;
  std::vector<float> clicks;
  for (const SparsePart& part : parts) {
    const std::size_t keys = part.keys.size();
    const auto add = [keys](std::vector<float>& to, std::span<const float> counts, float usual) {
      if (counts.empty()) to.insert(to.end(), keys, usual);
      to.insert(to.end(), counts.begin(), counts.end());
    };
    add(shows, part.statistics.shows, 1.0f);
    add(clicks, part.statistics.clicks, 0.0f);
    if (keys != 0) out.slot = part.statistics.slot;
  }
  out.shows.resize(groups.keys.size());
  out.clicks.resize(groups.keys.size());
  float* to = out.shows.data();
  sum_by_group(groups, shows, 1, {&to, 1});
  to = out.clicks.data();
  sum_by_group(groups, clicks, 1, {&to, 1});
}

SparseSum average(const std::vector<SparsePart>& parts, const TableConfig& config, float pushes) {
  std::vector<std::uint64_t> keys;
  std::vector<float> gradients;
  for (const SparsePart& part : parts) {
    keys.insert(keys.end(), part.keys.begin(), part.keys.end());
    gradients.insert(gradients.end(), part.gradients.begin(), part.gradients.end());
  }
  KeyGroups groups = group_keys(keys, 1);
  SparseSum out;
  out.gradients.resize(groups.keys.size() * config.width);
  float* to = out.gradients.data();
  sum_by_group(groups, gradients, config.width, {&to, 1});
  if (config.accessor.kind != Accessor::Kind::plain) sum_counts(parts, groups, out);
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
      sparse_parts[push.sections.sparse[i].table].push_back(
          {push.keys[i], push.gradients[i], statistics_of(push, i)});
    }
    for (std::size_t i = 0; i < push.dense.size(); ++i) {
      dense_parts[push.sections.dense[i].table].push_back(push.dense[i]);
    }
  }
  const auto pushes = static_cast<float>(step.size());
  const float rate = step.front().push->rate;
  std::map<std::uint32_t, SparseSum> sparse_sums;
  std::map<std::uint32_t, std::vector<float>> dense_sums;
  for (const auto& [id, parts] : sparse_parts) {
    const TableConfig& config = tables.sparse(id).config();
    const auto& sum = sparse_sums.emplace(id, average(parts, config, pushes)).first->second;
    check_sum(config, sum.gradients);
  }
  for (const auto& [id, parts] : dense_parts) {
    const auto& sum = dense_sums.emplace(id, average(parts, pushes)).first->second;
    check_sum(tables.dense(id).config(), sum);
  }
  const MemoryBudget::Stay staying = tables.stay();
  for (const auto& [id, sum] : sparse_sums) tables.sparse(id).warm(sum.keys);
  for (const auto& [id, sum] : sparse_sums) {
    tables.sparse(id).push(sum.keys, sum.gradients.data(), {sum.shows, sum.clicks, sum.slot}, rate);
  }
  for (const auto& [id, sum] : dense_sums) tables.dense(id).push(sum, rate);
}

}  // namespace fleetrun::ps
