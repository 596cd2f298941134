#include "dataset/memory/line_merge.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "dataset/memory/in_memory_dataset.h"

namespace fleetrun::dataset {
namespace {

constexpr float kSmallestMerged = 1e-6F;

/// The values [begin, end) of one example in a slot.
struct Part {
  std::size_t begin, end;
};

Part part_of(const Slot& slot, const SlotValues& values, std::size_t row) {
  if (!slot.dense) return {values.offsets[row], values.offsets[row + 1]};
  const auto width = static_cast<std::size_t>(slot.width);
  return {row * width, (row + 1) * width};
}

bool has_values(const Slot& slot, const SlotValues& values, std::size_t row) {
  const Part part = part_of(slot, values, row);
  for (std::size_t i = part.begin; i < part.end; ++i) {
    if (slot.type == SlotType::int64 ? values.ints[i] != 0 : std::fabs(values.floats[i]) >= kSmallestMerged)
      return true;
  }
  return false;
}

void append(const Slot& slot, const SlotValues& from, std::size_t row, SlotValues& to) {
  const Part part = part_of(slot, from, row);
  const auto copy = [&](const auto& source, auto& target) {
    if (source.empty()) return;
    target.insert(target.end(), source.begin() + static_cast<std::ptrdiff_t>(part.begin),
                  source.begin() + static_cast<std::ptrdiff_t>(part.end));
  };
  copy(from.ints, to.ints);
  copy(from.floats, to.floats);
  if (!slot.dense) to.offsets.push_back(std::max(to.ints.size(), to.floats.size()));
}

/// Of each slot the row of `group` whose values it gets; empty where two rows have values of a sparse slot.
std::vector<std::size_t> choose_rows(const std::vector<Slot>& slots, const Batch& group) {
  std::vector<std::size_t> chosen(slots.size(), 0);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    bool found = false;
    for (std::size_t row = 0; row < group.rows; ++row) {
      if (!has_values(slots[s], group.slots[s], row)) continue;
      if (found && !slots[s].dense) return {};
      found = true;
      chosen[s] = row;
    }
  }
  return chosen;
}

/// Collects merged examples, and packs them a block at a time.
class MergedRows {
 public:
  explicit MergedRows(ExampleStore& store) : store_(store) { clear(); }

  void add(const Batch& group, const std::vector<std::size_t>& chosen) {
    for (std::size_t s = 0; s < chosen.size(); ++s)
      append(store_.slots()[s], group.slots[s], chosen[s], batch_.slots[s]);
    batch_.prefixes.ids.push_back(group.prefixes.ids.front());
    if (!group.prefixes.contents.empty()) batch_.prefixes.contents.push_back(group.prefixes.contents.front());
    if (!group.prefixes.log_keys.empty()) batch_.prefixes.log_keys.push_back(group.prefixes.log_keys.front());
    if (++batch_.rows == kBlockRows) flush();
  }
  void flush() {
    store_.add(batch_);
    clear();
  }

 private:
  void clear() {
    batch_ = {};
    batch_.slots.resize(store_.slots().size());
    for (std::size_t s = 0; s < batch_.slots.size(); ++s)
      if (!store_.slots()[s].dense) batch_.slots[s].offsets.assign(1, 0);
  }

  ExampleStore& store_;
  Batch batch_;
};

}  // namespace

ExampleStore merge_lines(const ExampleStore& store, std::span<const ExampleNumber> order,
                         std::size_t merge_size, MergeCounts& counts) {
  std::vector<std::string> ids;
  store.gather_ids(order, ids);
  std::vector<std::uint32_t> by_id(order.size());
  std::iota(by_id.begin(), by_id.end(), 0U);
  std::stable_sort(by_id.begin(), by_id.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return ids[a] < ids[b]; });

  ExampleStore merged(store.slots(), store.prefixes());
  MergedRows rows(merged);
  Batch group;
  std::vector<ExampleNumber> numbers;
  for (std::size_t begin = 0, end; begin < by_id.size(); begin = end) {
    numbers.clear();
    for (end = begin; end < by_id.size() && ids[by_id[end]] == ids[by_id[begin]]; ++end)
      numbers.push_back(order[by_id[end]]);
    if (merge_size > 0 && numbers.size() != merge_size) {
      counts.wrong_size += numbers.size();
      continue;
    }
    store.gather(numbers, group);
    const std::vector<std::size_t> chosen = choose_rows(store.slots(), group);
    if (chosen.empty()) {
      counts.conflicts += numbers.size();
      continue;
    }
    rows.add(group, chosen);
    ++counts.merged;
  }
  rows.flush();
  return merged;
}

}  // namespace fleetrun::dataset
