// The result depends on the order of contributions only, which is fixed: distinct keys are found in that
// order and each row's gradients are added in that order, so two runs give the same bits.
#include "ps/sync/sync_step.h"

#include <algorithm>
#include <cmath>
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

void cut(const Clip& clip, std::span<float> values) {
  if (clip.kind != Clip::Kind::value) return;
  for (float& value : values) value = std::clamp(value, clip.least, clip.most);
}

/// The mean of a step's gradients, by table.
struct StepMean {
  std::map<std::uint32_t, SparseSum> sparse;
  std::map<std::uint32_t, std::vector<float>> dense;

  StepMean(const Requests& step, const TableSet& tables);
  /// The gradients of a table; none where no push has any.
  std::span<float> of(std::uint32_t table);
};

StepMean::StepMean(const Requests& step, const TableSet& tables) {
  std::map<std::uint32_t, std::vector<SparsePart>> sparse_parts;
  std::map<std::uint32_t, std::vector<std::span<const float>>> dense_parts;
  for (const wire::PushRequest* push : step) {
    for (std::size_t i = 0; i < push->keys.size(); ++i) {
      sparse_parts[push->sections.sparse[i].table].push_back(
          {push->keys[i], push->gradients[i], statistics_of(*push, i)});
    }
    for (std::size_t i = 0; i < push->dense.size(); ++i) {
      dense_parts[push->sections.dense[i].table].push_back(push->dense[i]);
    }
  }
  const auto pushes = static_cast<float>(step.size());
  for (const auto& [id, parts] : sparse_parts) {
    const TableConfig& config = tables.sparse(id).config();
    const auto& sum = sparse.emplace(id, average(parts, config, pushes)).first->second;
    check_sum(config, sum.gradients);
  }
  for (const auto& [id, parts] : dense_parts) {
    const auto& sum = dense.emplace(id, average(parts, pushes)).first->second;
    check_sum(tables.dense(id).config(), sum);
  }
}

std::span<float> StepMean::of(std::uint32_t table) {
  if (const auto found = sparse.find(table); found != sparse.end()) return found->second.gradients;
  if (const auto found = dense.find(table); found != dense.end()) return found->second;
  return {};
}

std::vector<float> squares_of(StepMean& mean, const TableSet& tables) {
  std::vector<float> out;
  for (const TableConfig& table : tables.clipped_to_norm()) {
    double sum = 0.0;
    for (const float value : mean.of(table.id))
      sum += static_cast<double>(value) * static_cast<double>(value);
    out.push_back(static_cast<float>(sum));
  }
  return out;
}

/// What the pushes say of all servers, or what there is where this server is the only one.
std::vector<float> all_squares(const Requests& step, StepMean& mean, const TableSet& tables) {
  for (const wire::PushRequest* push : step) {
    if (push->squares.size() == tables.clipped_to_norm().size())
      return {push->squares.begin(), push->squares.end()};
  }
  if (!tables.is_part()) return squares_of(mean, tables);
  throw Error(ErrorKind::data, "no push of the step says what norm its gradients have on all servers",
              "start all trainers again together");
}

void scale(std::span<float> values, float norm, float most) {
  const float factor = most / std::max(most, norm);
  for (float& value : values) value *= factor;
}

void clip(const Requests& step, StepMean& mean, const TableSet& tables) {
  for (auto& [id, sum] : mean.sparse) cut(tables.sparse(id).config().clip, sum.gradients);
  for (auto& [id, sum] : mean.dense) cut(tables.dense(id).config().clip, sum);
  const std::vector<TableConfig>& clipped = tables.clipped_to_norm();
  if (clipped.empty()) return;
  const std::vector<float> squares = all_squares(step, mean, tables);
  float all = 0.0f;
  for (std::size_t i = 0; i < clipped.size(); ++i) {
    if (clipped[i].clip.kind == Clip::Kind::global_norm) all += squares[i];
  }
  for (std::size_t i = 0; i < clipped.size(); ++i) {
    const bool is_global = clipped[i].clip.kind == Clip::Kind::global_norm;
    scale(mean.of(clipped[i].id), std::sqrt(is_global ? all : squares[i]), clipped[i].clip.most);
  }
}

}  // namespace

std::vector<float> mean_squares(const Requests& step, const TableSet& tables) {
  StepMean mean(step, tables);
  return squares_of(mean, tables);
}

void apply_averaged(const std::vector<Contribution>& contributions, TableSet& tables) {
  if (contributions.size() == 1 && !tables.has_clips()) return tables.apply(*contributions.front().push);
  Requests step;
  for (const Contribution& contribution : contributions) step.push_back(contribution.push.get());
  StepMean mean(step, tables);
  if (tables.has_clips()) clip(step, mean, tables);
  const float rate = step.front()->rate;
  tables.marks().note_change();
  const MemoryBudget::Stay staying = tables.stay();
  for (const auto& [id, sum] : mean.sparse) tables.sparse(id).warm(sum.keys);
  for (const auto& [id, sum] : mean.sparse) {
    tables.sparse(id).push(sum.keys, sum.gradients.data(), {sum.shows, sum.clicks, sum.slot}, rate);
  }
  for (const auto& [id, sum] : mean.dense) tables.dense(id).push(sum, rate);
}

}  // namespace fleetrun::ps
