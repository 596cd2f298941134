// Who gives up a place when strangers have taken all: one rule for every listener.
#pragma once

#include <cstddef>

namespace fleetrun {

/// Of visitors who have not proven anything, the longest there first: the oldest that has said nothing, else
/// the oldest. Who is in the middle of a proof keeps its place, however many others open connections. No more
/// than `looked_at` are looked at.
template <class Iterator, class HasSpoken>
Iterator first_to_go(Iterator begin, Iterator end, HasSpoken has_spoken, std::size_t looked_at) {
  Iterator visitor = begin;
  for (; visitor != end && looked_at > 0; ++visitor, --looked_at)
    if (!has_spoken(*visitor)) return visitor;
  return begin;
}

}  // namespace fleetrun
