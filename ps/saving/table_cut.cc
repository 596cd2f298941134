#include "ps/saving/table_cut.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fleetrun::ps {
namespace {

constexpr std::size_t kMostSortedFloats = std::size_t{32} << 20;

void append(const ColdBlock& block, ColdBlock& to) {
  to.keys.insert(to.keys.end(), block.keys.begin(), block.keys.end());
  to.rows.insert(to.rows.end(), block.rows.begin(), block.rows.end());
}

}  // namespace

TableCut::TableCut(std::shared_ptr<TableSet> set, const std::vector<TableConfig>& tables, SaveMode mode)
    : set_(std::move(set)), mode_(mode) {
  for (const TableConfig& config : tables) {
    if (config.kind == TableConfig::Kind::dense) {
      dense_.emplace(config.id, set_->dense(config.id).contents());
    } else {
      sparse_.emplace(config.id, set_->sparse(config.id).begin_cut(mode));
    }
  }
}

void TableCut::rows(std::uint32_t table, std::size_t shard,
                    const std::function<void(std::uint64_t, std::span<const float>)>& take) const {
  SparseCut& cut = *sparse_.at(table);
  const std::size_t floats = set_->sparse(table).row_floats();
  ColdBlock block;
  ColdBlock gathered;
  std::vector<std::uint32_t> order;
  for (bool more = true; more;) {
    more = cut.read(shard, block);
    append(block, gathered);
    if (more && gathered.rows.size() < kMostSortedFloats) continue;
    order.resize(gathered.keys.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return gathered.keys[a] < gathered.keys[b]; });
    for (const std::uint32_t i : order) take(gathered.keys[i], {gathered.rows.data() + i * floats, floats});
    gathered.keys.clear();
    gathered.rows.clear();
  }
}

std::span<const std::uint64_t> TableCut::admission_words(std::uint32_t table, std::size_t shard) const {
  if (mode_ == SaveMode::delta || mode_ == SaveMode::base) return {};
  return sparse_.at(table)->admission_words(shard);
}

void TableCut::settle() {
  for (const auto& [id, cut] : sparse_) cut->settle();
}

}  // namespace fleetrun::ps
