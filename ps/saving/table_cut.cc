#include "ps/saving/table_cut.h"

#include <utility>

namespace fleetrun::ps {

TableCut::TableCut(std::shared_ptr<TableSet> set, const std::vector<TableConfig>& tables)
    : set_(std::move(set)) {
  for (const TableConfig& config : tables) {
    if (config.kind == TableConfig::Kind::dense) dense_.emplace(config.id, set_->dense(config.id).contents());
  }
}

std::uint64_t TableCut::count(std::uint32_t table) const {
  return set_->sparse(table).rows();
}

void TableCut::rows(std::uint32_t table, std::size_t shard,
                    const std::function<void(std::uint64_t, std::span<const float>)>& take) const {
  set_->sparse(table).visit(shard, take);
}

}  // namespace fleetrun::ps
