#include "ps/table/memory_budget.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "runtime/base/error.h"

using namespace fleetrun::ps;

namespace {

// A table of rows of 10 bytes, which are numbers; some of them were used.
class Rows final : public Coolable {
 public:
  Rows(MemoryBudget& budget, std::size_t shards, int rows) : budget_(budget), rows_(shards), hands_(shards) {
    for (std::set<int>& shard : rows_) {
      for (int row = 0; row < rows; ++row) shard.insert(row);
    }
    budget_.took(10 * shards * static_cast<std::size_t>(rows));
    budget_.join(*this);
  }
  ~Rows() override { budget_.leave(*this); }

  std::size_t shards() const noexcept override { return rows_.size(); }
  bool cool(std::size_t shard, std::size_t rows) override {
    ++calls;
    if (fails) throw fleetrun::Error(fleetrun::ErrorKind::host, "the disk is full");
    auto row = rows_[shard].lower_bound(hands_[shard]);
    for (; rows > 0 && row != rows_[shard].end(); --rows) {
      if (pinned.contains(*row) || used.erase(*row) != 0) {
        ++row;
        continue;
      }
      row = rows_[shard].erase(row);
      budget_.gave(10);
      if (at_once > 0 && ++left % at_once == 0) break;
    }
    const bool is_at_end = row == rows_[shard].end();
    hands_[shard] = is_at_end ? 0 : *row;
    return is_at_end;
  }

  const std::set<int>& shard(std::size_t i) const { return rows_[i]; }

  std::set<int> used;
  std::set<int> pinned;
  int at_once = 1;  // rows that leave in one call
  int left = 0;
  int calls = 0;
  bool fails = false;

 private:
  MemoryBudget& budget_;
  std::vector<std::set<int>> rows_;
  std::vector<int> hands_;
};

}  // namespace

TEST_CASE("rows leave until the rest fits, and nobody looks before there are too many") {
  MemoryBudget budget(50);
  Rows rows(budget, 1, 5);
  budget.make_room();
  CHECK(rows.calls == 0);
  budget.took(20);
  budget.make_room();
  CHECK(budget.used() == 50);
  CHECK(rows.shard(0) == std::set<int>{2, 3, 4});
}

TEST_CASE("rows that were used stay for another round, and the hand goes on where it stopped") {
  MemoryBudget budget(40);
  Rows rows(budget, 1, 5);
  rows.used = {0};
  budget.make_room();
  CHECK(rows.shard(0) == std::set<int>{0, 2, 3, 4});
  budget.took(10);
  budget.make_room();
  CHECK(rows.shard(0) == std::set<int>{0, 3, 4});
}

TEST_CASE("all tables and all shards have their turn") {
  MemoryBudget budget(0);
  Rows one(budget, 2, 3);
  Rows other(budget, 3, 2);
  budget.make_room();
  CHECK(budget.used() == 0);
  CHECK(one.shard(1).empty());
  CHECK(other.shard(2).empty());
}

TEST_CASE("where no row can leave, the search ends") {
  MemoryBudget budget(10);
  Rows rows(budget, 2, 3);
  rows.pinned = {0, 1, 2};
  budget.make_room();
  CHECK(budget.used() == 60);
  CHECK(rows.calls < 20);
}

TEST_CASE("a table that is gone is not asked") {
  MemoryBudget budget(10);
  Rows stays(budget, 1, 3);
  { const Rows goes(budget, 1, 3); }
  budget.make_room();
  CHECK(stays.shard(0).empty());
}

TEST_CASE("what keeps rows from leaving is told, and it works again afterwards") {
  MemoryBudget budget(10);
  Rows rows(budget, 1, 3);
  rows.fails = true;
  CHECK_THROWS_AS(budget.make_room(), fleetrun::Error);
  CHECK(rows.shard(0).size() == 3);
  rows.fails = false;
  budget.make_room();
  CHECK(rows.shard(0).size() == 1);
}
