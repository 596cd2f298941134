#include "ps/geo/local_tables.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ps/base/key_groups.h"
#include "ps/table/push_values.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

namespace {

/// Floats of one pull of many rows, about.
constexpr std::size_t kFloatsAtOnce = std::size_t{4} << 20;

std::size_t rows_at_once(std::size_t width) noexcept {
  return std::max<std::size_t>(1, kFloatsAtOnce / width);
}

}  // namespace

struct LocalTables::Summed {
  KeyGroups groups;
  std::vector<float> gradients;
};

LocalTables::LocalTables(const std::vector<TableConfig>& tables, bool counts_steps)
    : mine_(tables, {}), counts_steps_(counts_steps) {
  for (const TableConfig& config : tables) {
    if (config.kind == TableConfig::Kind::sparse) {
      rows_.emplace(config.id, std::make_unique<LocalRows>(mine_.sparse(config.id)));
    } else {
      dense_[config.id];
    }
  }
}

void LocalTables::check(std::uint32_t id, std::size_t keys, std::size_t floats) const {
  const bool is_sparse = rows_.contains(id);
  const TableConfig& config = is_sparse ? mine_.sparse(id).config() : mine_.dense(id).config();
  const std::size_t wanted = (is_sparse ? keys : 1) * config.width;
  if (floats == wanted) return;
  throw Error(ErrorKind::config, "table '" + config.name + "': " + std::to_string(floats) + " floats, " +
                                     std::to_string(wanted) + " are needed");
}

void LocalTables::fetch(std::span<const SparsePull> pulls, StepClient& servers) {
  std::vector<std::vector<std::uint64_t>> keys(pulls.size());
  std::vector<std::vector<float>> values(pulls.size());
  Pull missing;
  for (std::size_t i = 0; i < pulls.size(); ++i) {
    const std::uint32_t table = pulls[i].table;
    keys[i] = rows_.at(table)->claim(pulls[i].keys);
    if (keys[i].empty()) continue;
    values[i].resize(keys[i].size() * mine_.sparse(table).config().width);
    missing.sparse.push_back({.table = table, .keys = keys[i], .rows = values[i]});
  }
  if (missing.sparse.empty()) return;
  servers.pull(missing);
  for (std::size_t i = 0; i < pulls.size(); ++i) {
    if (!keys[i].empty()) rows_.at(pulls[i].table)->arrive(keys[i], values[i]);
  }
}

void LocalTables::fetch_dense(std::uint32_t table, StepClient& servers) {
  DenseTable& mine = mine_.dense(table);
  if (mine.has_values()) return;
  Dense& dense = dense_.at(table);
  const std::lock_guard lock(dense.mutex);
  if (mine.has_values()) return;
  dense.server.resize(mine.size());
  servers.pull({.sparse = {}, .dense = {{table, dense.server}}});
  mine.set(dense.server);
}

void LocalTables::pull(const Pull& request, StepClient& servers) {
  for (const SparsePull& sparse : request.sparse) {
    static_cast<void>(mine_.sparse(sparse.table));
    check(sparse.table, sparse.keys.size(), sparse.rows.size());
  }
  for (const DensePull& dense : request.dense) {
    static_cast<void>(mine_.dense(dense.table));
    check(dense.table, 0, dense.values.size());
  }
  fetch(request.sparse, servers);
  for (const SparsePull& sparse : request.sparse)
    mine_.sparse(sparse.table).pull(sparse.keys, sparse.rows.data());
  for (const DensePull& dense : request.dense) {
    fetch_dense(dense.table, servers);
    mine_.dense(dense.table).pull(dense.values);
  }
}

void LocalTables::push(const Push& request, float rate, StepClient& servers) {
  std::vector<Summed> sums(request.sparse.size());
  std::vector<SparsePull> pulls;
  for (std::size_t i = 0; i < request.sparse.size(); ++i) {
    const SparsePush& sparse = request.sparse[i];
    const TableConfig& config = mine_.sparse(sparse.table).config();
    check(sparse.table, sparse.keys.size(), sparse.gradients.size());
    sums[i].groups = group_keys(sparse.keys, 1);
    sums[i].gradients.resize(sums[i].groups.keys.size() * config.width);
    float* to = sums[i].gradients.data();
    sum_by_group(sums[i].groups, sparse.gradients, config.width, {&to, 1});
    check_gradients(config, sums[i].gradients, "applied");
    pulls.push_back({.table = config.id, .keys = sums[i].groups.keys, .rows = {}});
  }
  for (const DensePush& dense : request.dense) {
    const TableConfig& config = mine_.dense(dense.table).config();
    check(dense.table, 0, dense.gradients.size());
    check_gradients(config, dense.gradients, "applied");
  }
  fetch(pulls, servers);
  for (const DensePush& dense : request.dense) fetch_dense(dense.table, servers);
  std::shared_lock whole(cut_, std::defer_lock);
  if (counts_steps_) whole.lock();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    SparseTable& mine = mine_.sparse(request.sparse[i].table);
    mine.push(sums[i].groups.keys, sums[i].gradients.data(), {}, rate);
    const std::size_t touched = rows_.at(request.sparse[i].table)->touch(sums[i].groups.keys);
    changed_bytes_ += touched * (sizeof(std::uint64_t) + mine.config().width * sizeof(float));
  }
  for (const DensePush& dense : request.dense) mine_.dense(dense.table).push(dense.gradients, rate);
  if (!counts_steps_) return;
  const std::lock_guard lock(steps_mutex_);
  steps_.push_back(request.thread);
}

void LocalTables::set_dense(std::uint32_t table, std::span<const float> values) {
  DenseTable& mine = mine_.dense(table);
  check(table, 0, values.size());
  Dense& dense = dense_.at(table);
  const std::lock_guard lock(dense.mutex);
  dense.server.assign(values.begin(), values.end());
  mine.set(values);
}

void LocalTables::assign(std::uint32_t table, std::span<const std::uint64_t> keys,
                         std::span<const float> rows) {
  rows_.at(table)->replace(keys, rows);
}

void LocalTables::exchange(float share, StepClient& servers) {
  send(take(share), servers);
  receive_rows(servers);
  receive_dense(servers);
}

LocalTables::Difference LocalTables::take(float share) {
  Difference out;
  std::unique_lock whole(cut_, std::defer_lock);
  if (counts_steps_) whole.lock();
  changed_bytes_ = 0;
  for (const auto& [table, rows] : rows_) out.rows.emplace_back(table, rows->take_changes(share));
  for (auto& [table, dense] : dense_) {
    const DenseTable& mine = mine_.dense(table);
    if (!mine.has_values()) continue;
    const std::lock_guard lock(dense.mutex);
    std::vector<float>& change = out.dense.emplace_back(table, mine.size()).second;
    mine.pull(change);
    for (std::size_t i = 0; i < change.size(); ++i) {
      change[i] = (change[i] - dense.server[i]) * share;
      dense.server[i] += change[i];
    }
  }
  const std::lock_guard lock(steps_mutex_);
  out.steps.swap(steps_);
  return out;
}

// Where steps count, one push has them all: a server that has it has all of each, or none.
void LocalTables::send(const Difference& difference, StepClient& servers) const {
  Push push;
  push.threads = difference.steps;
  if (counts_steps_ && push.threads.empty()) push.thread = kNoThread;
  for (const auto& [table, changes] : difference.rows) {
    if (!changes.keys.empty())
      push.sparse.push_back({.table = table, .keys = changes.keys, .gradients = changes.values});
  }
  for (const auto& [table, change] : difference.dense)
    push.dense.push_back({.table = table, .gradients = change});
  if (!push.sparse.empty() || !push.dense.empty() || !push.threads.empty()) servers.push(push);
}

void LocalTables::receive_rows(StepClient& servers) {
  bool forgot = false, more = true;
  while (more) {
    const TouchedRows touched = servers.pull_touched();
    for (const TouchedRows::Table& table : touched.tables)
      rows_.at(table.table)->follow(table.keys, table.rows);
    forgot = forgot || touched.forgot;
    more = touched.more;
  }
  if (!forgot) return;
  std::vector<float> values;
  for (const auto& [table, rows] : rows_) {
    const std::size_t width = mine_.sparse(table).config().width;
    const std::vector<std::uint64_t> held = rows->held_keys();
    for (std::size_t at = 0; at < held.size(); at += rows_at_once(width)) {
      const auto keys =
          std::span<const std::uint64_t>(held).subspan(at, std::min(rows_at_once(width), held.size() - at));
      values.resize(keys.size() * width);
      servers.pull({.sparse = {{.table = table, .keys = keys, .rows = values}}, .dense = {}});
      rows->follow(keys, values);
    }
  }
}

void LocalTables::receive_dense(StepClient& servers) {
  Pull pull;
  pull.thread = 0;  // which pushes the next differences
  std::vector<std::pair<std::uint32_t, std::vector<float>>> all;
  for (const auto& [table, dense] : dense_) {
    if (mine_.dense(table).has_values()) all.emplace_back(table, mine_.dense(table).size());
  }
  for (auto& [table, values] : all) pull.dense.push_back({table, values});
  if (all.empty()) return;
  servers.pull(pull);
  for (auto& [table, values] : all) {
    Dense& dense = dense_.at(table);
    const std::lock_guard lock(dense.mutex);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float now = values[i];
      values[i] -= dense.server[i];
      dense.server[i] = now;
    }
    mine_.dense(table).add(values);
  }
}

}  // namespace fleetrun::ps
