// The tables of one server as they were at one moment, while the server goes on with them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ps/table/sparse_cut.h"
#include "ps/table/table_set.h"

namespace fleetrun::ps {

/// Threads: rows() of different shards may run at once.
class TableCut {
 public:
  /// To be made while nothing changes the tables.
  TableCut(std::shared_ptr<TableSet> set, const std::vector<TableConfig>& tables,
           SaveMode mode = SaveMode::all, const ChangeWindow& window = {});

  SaveMode mode() const noexcept { return mode_; }
  /// How many rows the sparse table had, whatever the mode leaves out.
  std::uint64_t count(std::uint32_t table) const { return sparse_.at(table)->rows(); }
  /// Memory for rows(), to be used again for the next shard.
  struct Scratch {
    ColdBlock block;
    std::vector<float> rows;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> order;  // key, position
  };
  /// Calls `take` once with every row of a shard that the mode saves: in key order, unless the shard is
  /// larger than what is sorted at once.
  void rows(std::uint32_t table, std::size_t shard, Scratch& scratch,
            const std::function<void(std::uint64_t key, std::span<const float> row)>& take) const;
  /// What admission had counted; nothing in a delta, a base or changes, which are not what training goes on
  /// from.
  std::span<const std::uint64_t> admission_words(std::uint32_t table, std::size_t shard) const;
  /// The keys whose rows have gone in the window.
  std::span<const std::uint64_t> erased(std::uint32_t table, std::size_t shard) const {
    return sparse_.at(table)->erased(shard);
  }
  const DenseTable::Contents& dense(std::uint32_t table) const { return dense_.at(table); }

  /// Whether settle() changes anything.
  bool changes_rows() const;
  /// For settle() alone: nobody reads the rows.
  void pass_over();
  /// The save is durable: what its mode changes in the rows that it holds (ps/table/accessor.h,
  /// note_saved). Called once. `tell`: as SparseCut::settle() has it, and the table.
  using Settled = std::function<void(std::uint32_t table, std::span<const std::uint64_t> keys,
                                     std::span<const Statistics> saved)>;
  void settle(const Settled& tell = {});

 private:
  std::shared_ptr<TableSet> set_;  // owned with the server, which may load others meanwhile
  SaveMode mode_;
  std::map<std::uint32_t, std::unique_ptr<SparseCut>> sparse_;
  std::map<std::uint32_t, DenseTable::Contents> dense_;
};

}  // namespace fleetrun::ps
