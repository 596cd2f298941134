// What an accessor decides about a row by its statistics: its score, whether a save of a kind takes it and
// what changes then, and whether it expires. Pure. The decisions are those
// of Paddle's CtrCommonAccessor and SparseAccessor.
#pragma once

#include <cstdint>

#include "ps/base/table_config.h"
#include "ps/table/row_layout.h"

namespace fleetrun::ps {

/// Paddle's numbers, and one of ours. delta and base take rows by score; a delta is what has changed since
/// the last delta or base. changes: the rows that have changed since an export, and which have gone.
enum class SaveMode : std::uint32_t { all = 0, delta = 1, base = 2, checkpoint = 3, changes = 4 };

/// (show - click) * nonclk_coeff + click * click_coeff
inline float score_of(const Accessor& accessor, float show, float click) noexcept {
  return (show - click) * accessor.nonclk_coeff + click * accessor.click_coeff;
}

/// Whether a save in this mode holds a row. Plain rows, which have no statistics, are in every save.
bool should_save(const Accessor& accessor, const Statistics& statistics, SaveMode mode) noexcept;
/// What a save in this mode, once it is durable, changes in a row that was as `saved` when it was taken: the
/// delta score that a delta or base has saved goes, and after a checkpoint a row has been unseen
/// for another day.
void note_saved(const Accessor& accessor, const Statistics& saved, SaveMode mode, Statistics& now) noexcept;

/// Decays show and click. True when the row is to go.
bool decay(const Accessor& accessor, Statistics& statistics) noexcept;

/// What a push of a key does to its row's statistics.
void note_push(const Accessor& accessor, float show, float click, std::uint16_t slot,
               Statistics& now) noexcept;

}  // namespace fleetrun::ps
