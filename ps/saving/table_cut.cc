#include "ps/saving/table_cut.h"

#include <algorithm>
#include <utility>

namespace fleetrun::ps {
namespace {

constexpr std::size_t kMaxSortedFloats = std::size_t{32} << 20;

}  // namespace

TableCut::TableCut(std::shared_ptr<TableSet> set, const std::vector<TableConfig>& tables, SaveMode mode,
                   const ChangeWindow& window)
    : set_(std::move(set)), mode_(mode) {
  for (const TableConfig& config : tables) {
    if (config.kind == TableConfig::Kind::dense) {
      dense_.emplace(config.id, set_->dense(config.id).contents());
    } else {
      sparse_.emplace(config.id, set_->sparse(config.id).begin_cut(mode, window));
    }
  }
}

void TableCut::rows(std::uint32_t table, std::size_t shard, Scratch& scratch,
                    const std::function<void(std::uint64_t, std::span<const float>)>& take) const {
  SparseCut& cut = *sparse_.at(table);
  const std::size_t floats = set_->sparse(table).row_floats();
  auto& [block, rows, order] = scratch;
  rows.clear();
  order.clear();
  for (bool more = true; more;) {
    more = cut.read(shard, block);
    for (const std::uint64_t key : block.keys)
      order.emplace_back(key, static_cast<std::uint32_t>(order.size()));
    rows.insert(rows.end(), block.rows.begin(), block.rows.end());
    if (more && rows.size() < kMaxSortedFloats) continue;
    std::sort(order.begin(), order.end());
    for (const auto& [key, position] : order) take(key, {rows.data() + position * floats, floats});
    rows.clear();
    order.clear();
  }
}

std::span<const std::uint64_t> TableCut::admission_words(std::uint32_t table, std::size_t shard) const {
  if (mode_ != SaveMode::all && mode_ != SaveMode::checkpoint) return {};
  return sparse_.at(table)->admission_words(shard);
}

bool TableCut::changes_rows() const {
  return std::ranges::any_of(sparse_, [](const auto& cut) { return cut.second->changes_rows(); });
}

void TableCut::pass_over() {
  for (const auto& [id, cut] : sparse_) cut->pass_over();
}

void TableCut::settle(const Settled& tell) {
  for (const auto& [id, cut] : sparse_) {
    SparseCut::Settled tell_of;
    if (tell) tell_of = [&, table = id](auto keys, auto saved) { tell(table, keys, saved); };
    cut->settle(tell_of);
  }
}

}  // namespace fleetrun::ps
