// The tables of one server as they were at one moment, while the server goes on with them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "ps/table_set.h"

namespace fleetrun::ps {

/// Threads: rows() of different shards may run at once.
class TableCut {
 public:
  /// To be made while nothing changes the tables.
  TableCut(std::shared_ptr<TableSet> set, const std::vector<TableConfig>& tables);

  /// About how many rows the sparse table holds.
  std::uint64_t count(std::uint32_t table) const;
  /// Calls `take` with every row of a shard, in key order.
  void rows(std::uint32_t table, std::size_t shard,
            const std::function<void(std::uint64_t key, std::span<const float> row)>& take) const;
  const DenseTable::Contents& dense(std::uint32_t table) const { return dense_.at(table); }

 private:
  std::shared_ptr<TableSet> set_;  // owned with the server, which may load others meanwhile
  std::map<std::uint32_t, DenseTable::Contents> dense_;
};

}  // namespace fleetrun::ps
