#include "ps/table/accessor.h"

#include <algorithm>

namespace fleetrun::ps {

bool should_save(const Accessor& accessor, const Statistics& statistics, SaveMode mode) noexcept {
  if (accessor.kind == Accessor::Kind::plain || (mode != SaveMode::delta && mode != SaveMode::base))
    return true;
  const float min_delta = mode == SaveMode::base ? 0.0f : accessor.delta_threshold;
  return score_of(accessor, statistics.show, statistics.click) >= accessor.base_threshold &&
         statistics.delta_score >= min_delta &&
         static_cast<float>(statistics.unseen_days()) <= accessor.delta_keep_days;
}

void note_saved(const Accessor& accessor, const Statistics& saved, SaveMode mode, Statistics& now) noexcept {
  if (accessor.kind == Accessor::Kind::plain) return;
  const bool counts = mode == SaveMode::delta || mode == SaveMode::base;
  if (mode == SaveMode::checkpoint) {
    now.set_unseen_days(static_cast<std::uint16_t>(now.unseen_days() + 1));
  } else if (counts && should_save(accessor, saved, mode)) {
    // What pushes have added since the row was taken belongs to the next delta.
    now.delta_score = std::max(0.0f, now.delta_score - saved.delta_score);
  }
}

bool decay(const Accessor& accessor, Statistics& statistics) noexcept {
  statistics.show *= accessor.show_click_decay_rate;
  statistics.click *= accessor.show_click_decay_rate;
  return score_of(accessor, statistics.show, statistics.click) < accessor.delete_threshold ||
         static_cast<float>(statistics.unseen_days()) > accessor.delete_after_unseen_days;
}

void note_push(const Accessor& accessor, float show, float click, std::uint16_t slot,
               Statistics& now) noexcept {
  now.show += show;
  now.click += click;
  now.delta_score += score_of(accessor, show, click);
  now.slot = slot;
  now.set_unseen_days(0);
}

}  // namespace fleetrun::ps
