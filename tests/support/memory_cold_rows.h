// Cold rows in a map: what every other keeper of cold rows has to agree with,
// and what tables are tested with.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "ps/table/cold_rows.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

class MemoryColdRows final : public ColdRows {
 public:
  static constexpr std::size_t kShards = 64;
  using Shard = std::map<std::uint64_t, std::vector<float>>;
  using Shards = std::array<Shard, kShards>;

  explicit MemoryColdRows(std::size_t row_floats) : row_floats_(row_floats) {}

  std::size_t row_floats() const noexcept override { return row_floats_; }

  std::vector<std::uint32_t> take(std::size_t shard, std::span<const std::uint64_t> keys,
                                  std::span<float> rows) override {
    fail_if_told();
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      const auto row = shards_[shard].find(keys[i]);
      if (row == shards_[shard].end()) continue;
      std::copy(row->second.begin(), row->second.end(), rows.data() + found.size() * row_floats_);
      found.push_back(i);
      shards_[shard].erase(row);
    }
    return found;
  }

  void put(std::size_t shard, std::span<const std::uint64_t> keys, std::span<const float> rows) override {
    fail_if_told();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto row = rows.subspan(i * row_floats_, row_floats_);
      const bool is_new = shards_[shard].emplace(keys[i], std::vector<float>(row.begin(), row.end())).second;
      if (!is_new) throw std::logic_error("a row that is cold already becomes cold");
    }
  }

  void erase(std::size_t shard, std::span<const std::uint64_t> keys) override {
    fail_if_told();
    for (const std::uint64_t key : keys) shards_[shard].erase(key);
  }

  void rewrite(std::size_t shard,
               const std::function<Fate(std::uint64_t key, std::span<float> row)>& decide) override {
    fail_if_told();
    for (auto item = shards_[shard].begin(); item != shards_[shard].end();) {
      std::vector<float> row = item->second;
      const Fate fate = decide(item->first, row);
      if (fate == Fate::change) item->second = std::move(row);
      item = fate == Fate::erase ? shards_[shard].erase(item) : std::next(item);
    }
  }

  std::uint64_t count(std::size_t shard) const noexcept override { return shards_[shard].size(); }
  std::uint64_t bytes_on_disk() const noexcept override { return 0; }

  std::unique_ptr<ColdView> view() const override { return std::make_unique<View>(shards_, row_floats_); }

  /// From now on every change fails, or not any more.
  void fail(bool yes) noexcept { fails_ = yes; }

 private:
  class View final : public ColdView {
   public:
    View(Shards shards, std::size_t row_floats) : shards_(std::move(shards)), row_floats_(row_floats) {}
    std::uint64_t count(std::size_t shard) const noexcept override { return shards_[shard].size(); }
    ColdBlock read(std::size_t shard, std::uint64_t from, std::size_t max) const override {
      ColdBlock block;
      block.rows.reserve(std::min(max, shards_[shard].size()) * row_floats_);
      for (auto row = shards_[shard].lower_bound(from); row != shards_[shard].end(); ++row) {
        if (block.keys.size() == max) break;
        block.keys.push_back(row->first);
        block.rows.insert(block.rows.end(), row->second.begin(), row->second.end());
      }
      return block;
    }

   private:
    Shards shards_;
    std::size_t row_floats_;
  };

  void fail_if_told() const {
    if (fails_) throw Error(ErrorKind::host, "cold rows: told to fail");
  }

  std::size_t row_floats_;
  Shards shards_;
  bool fails_ = false;
};

}  // namespace fleetrun::ps
