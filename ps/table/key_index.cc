#include "ps/table/key_index.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/mix.h"

namespace fleetrun::ps {

// The slot that holds `key`, or the free one where it belongs. There always is a free one.
std::size_t KeyIndex::slot_of(std::uint64_t key) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = mix(key ^ kGoldenGamma) & mask;
  while (slots_[at] != kNone && keys_[slots_[at]] != key) at = (at + 1) & mask;
  return at;
}

std::uint32_t KeyIndex::find(std::uint64_t key) const noexcept {
  return slots_.empty() ? kNone : slots_[slot_of(key)];
}

std::uint32_t KeyIndex::add(std::uint64_t key) {
  if (4 * (keys_.size() + 1) > 3 * slots_.size()) grow();
  std::uint32_t& slot = slots_[slot_of(key)];
  if (slot == kNone) {
    if (keys_.size() == kNone)
      throw Error(ErrorKind::data, "more than 4294967294 keys in one table of a trainer");
    slot = static_cast<std::uint32_t>(keys_.size());
    keys_.push_back(key);
  }
  return slot;
}

std::vector<std::uint64_t> KeyIndex::take() {
  slots_.clear();
  return std::exchange(keys_, {});
}

void KeyIndex::grow() {
  slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), kNone);
  for (std::size_t i = 0; i < keys_.size(); ++i) slots_[slot_of(keys_[i])] = static_cast<std::uint32_t>(i);
}

}  // namespace fleetrun::ps
