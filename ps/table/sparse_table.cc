// Pulls and pushes. What else is done to a table is in ps/table/sparse_upkeep.cc;
// what both share in ps/table/sparse_batch.h.
#include "ps/table/sparse_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ps/table/sparse_batch.h"
#include "ps/table/sparse_cut_shard.h"

namespace fleetrun::ps {

SparseTable::SparseTable(const TableConfig& config, RowClock clock)
    : config_(config),
      layout_(config),
      clock_(std::move(clock)),
      initializer_(config.initializer, config.name),
      arena_(RowPlaces(layout_.floats).slab_floats()) {
  if (layout_.part_count == 2 || layout_.statistics != 0) {
    updaters_.emplace_back(config.accessor.embed_rule.value_or(config.rule));
  }
  if (layout_.part_count == 2 || layout_.statistics == 0) updaters_.emplace_back(config.rule);
  const RowPlaces places(layout_.floats);
  shards_.reserve(kShards);
  for (std::size_t s = 0; s < kShards; ++s) {
    shards_.push_back(std::make_unique<Shard>(arena_, places, config.admission));
  }
}

void SparseTable::pull(std::span<const std::uint64_t> keys, float* rows, bool create) {
  const std::size_t out_width = pulled_width(config_);
  const std::size_t bytes = (layout_.statistics + layout_.width) * sizeof(float);
  std::vector<float> initial;
  for_keys(keys, bytes, [&](Shard& shard, std::size_t position, std::uint64_t hash, std::uint32_t row) {
    ++shard.metrics.pulled;
    float* out = rows + position * out_width;
    if (row == RowShard::kNone && create && shard.gate.admits_on_pull(keys[position])) {
      row = add_row(shard, hash, keys[position]);
    }
    if (row != RowShard::kNone) {
      touch(shard, row);
      return write_pulled(shard.rows.at(row), out);
    }
    initial.resize(layout_.floats);
    make_new(keys[position], initial.data());
    write_pulled(initial.data(), out);
  });
}

void SparseTable::write_pulled(const float* row, float* out) const noexcept {
  if (config_.accessor.kind == Accessor::Kind::ctr) {
    const Statistics statistics = read_statistics(row);
    *out++ = statistics.show;
    *out++ = statistics.click;
  }
  std::memcpy(out, row + layout_.statistics, layout_.width * sizeof(float));
}

void SparseTable::push(std::span<const std::uint64_t> keys, const float* gradients,
                       const PushStatistics& statistics, float rate) {
  const std::uint32_t second = second_of_change();
  for_keys(keys, layout_.floats * sizeof(float),
           [&](Shard& shard, std::size_t position, std::uint64_t hash, std::uint32_t row) {
             ++shard.metrics.pushed;
             const std::uint64_t key = keys[position];
             if (row == RowShard::kNone) {
               if (!shard.gate.admits_push(key)) {
                 ++shard.metrics.not_admitted;
                 return;
               }
               row = add_row(shard, hash, key);
             } else {
               before_change(shard, row);
             }
             touch(shard, row);
             update(key, shard.rows.at(row), gradients + position * layout_.width,
                    statistics.shows.empty() ? 1.0f : statistics.shows[position],
                    statistics.clicks.empty() ? 0.0f : statistics.clicks[position], statistics.slot, rate);
             write_touched(second, shard.rows.at(row));
           });
}

// The values of each key's row, which is made where there is none, to be changed by act(position, values).
template <class Act>
void SparseTable::change_values(std::span<const std::uint64_t> keys, const Act& act) {
  const std::uint32_t second = second_of_change();
  for_keys(keys, (layout_.statistics + layout_.width) * sizeof(float),
           [&](Shard& shard, std::size_t position, std::uint64_t hash, std::uint32_t row) {
             if (row == RowShard::kNone) {
               row = add_row(shard, hash, keys[position]);
             } else {
               before_change(shard, row);
             }
             touch(shard, row);
             act(position, shard.rows.at(row) + layout_.statistics);
             write_touched(second, shard.rows.at(row));
           });
}

void SparseTable::add(std::span<const std::uint64_t> keys, const float* changes) {
  change_values(keys, [this, changes](std::size_t position, float* values) {
    for (std::size_t c = 0; c < layout_.width; ++c) values[c] += changes[position * layout_.width + c];
  });
}

void SparseTable::assign(std::span<const std::uint64_t> keys, const float* values) {
  change_values(keys, [this, values](std::size_t position, float* to) {
    float* row = to - layout_.statistics;
    std::memcpy(to, values + position * layout_.width, layout_.width * sizeof(float));
    reset_rule(row);
    if (layout_.statistics == 0) return;
    Statistics statistics = read_statistics(row);
    statistics.set_extended(true);
    write_statistics(statistics, row);
  });
}

void SparseTable::update(std::uint64_t key, float* row, const float* gradient, float show, float click,
                         std::uint16_t slot, float rate) const noexcept {
  if (layout_.statistics == 0) return update_part(0, row, gradient, 1.0f, rate);
  const Accessor& accessor = config_.accessor;
  Statistics statistics = read_statistics(row);
  note_push(accessor, show, click, slot, statistics);
  // Paddle's SparseAccessor has no switch for it.
  const bool scales = (accessor.kind == Accessor::Kind::sparse || accessor.show_scale) && show > 0.0f;
  const float scale = scales ? show : 1.0f;
  update_part(0, row, gradient, scale, rate);
  if (statistics.is_extended()) {
    if (layout_.part_count == 2) update_part(1, row, gradient, scale, rate);
  } else if (score_of(accessor, statistics.show, statistics.click) >= accessor.embedx_threshold) {
    statistics.set_extended(true);
    initializer_.fill(key, {row + layout_.statistics, layout_.width}, 1);
  }
  write_statistics(statistics, row);
}

void SparseTable::update_part(std::size_t part, float* row, const float* gradient, float scale,
                              float rate) const noexcept {
  const RowLayout::Part& at = layout_.parts[part];
  std::uint32_t step = 0;
  if (at.steps != RowLayout::kNone) {
    std::memcpy(&step, row + at.steps, sizeof step);
    if (step != UINT32_MAX) ++step;
    std::memcpy(row + at.steps, &step, sizeof step);
  }
  updaters_[part].apply(row + layout_.statistics + at.column, row + at.state, gradient + at.column, at.width,
                        step, scale, rate);
}

std::uint32_t SparseTable::add_row(Shard& shard, std::uint64_t hash, std::uint64_t key) {
  const std::uint32_t row = take_row(shard, hash, key);
  make_new(key, shard.rows.at(row));
  shard.changed.make(row, key);
  ++shard.metrics.created;
  return row;
}

void SparseTable::make_new(std::uint64_t key, float* row) const noexcept {
  const std::span<float> values(row + layout_.statistics, layout_.width);
  initializer_.fill(key, values);
  reset_rule(row);
  write_touched(second_of_change(), row);
  if (layout_.statistics == 0) return;
  Statistics statistics;
  statistics.set_extended(0.0f >= config_.accessor.embedx_threshold);
  write_statistics(statistics, row);
  if (config_.accessor.zero_init) values[0] = 0.0f;
  if (!statistics.is_extended()) std::fill(values.begin() + 1, values.end(), 0.0f);
}

void SparseTable::reset_rule(float* row) const noexcept {
  for (std::size_t part = 0; part < layout_.part_count; ++part) {
    const RowLayout::Part& at = layout_.parts[part];
    updaters_[part].reset({row + at.state, at.state_floats});
    if (at.steps != RowLayout::kNone) std::memset(row + at.steps, 0, sizeof(float));
  }
}

void SparseTable::keep_for_cuts(Shard& shard, std::uint32_t row) const {
  for (CutShard* cut : shard.cuts) cut->keep(row, shard.rows.key_at(row), shard.rows.at(row), layout_.floats);
}

void SparseTable::see_for_cuts(Shard& shard, std::uint32_t row) const {
  for (CutShard* cut : shard.cuts) cut->see(row);
}

void SparseTable::before_change(Shard& shard, std::uint32_t row) const {
  keep_for_cuts(shard, row);
  see_for_cuts(shard, row);
  shard.changed.change(row);
}

void SparseTable::touch(Shard& shard, std::uint32_t row) const {
  if (!cold_) return;
  if (shard.uses[row] < kStays) ++shard.uses[row];
}

}  // namespace fleetrun::ps
