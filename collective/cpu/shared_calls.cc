#include "collective/cpu/shared_calls.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "collective/cpu/copy.h"

namespace fleetrun::collective {
namespace {

/// Reduced and copied in pieces that stay in the first cache.
constexpr std::size_t kPieceBytes = 8192;
/// Shares begin at multiples of this many elements of a slot: no two ranks write one cache line.
constexpr std::size_t kShareGrain = 64;
/// An output of its own that is larger is written past the caches.
constexpr std::size_t kStreamBytes = 4 << 20;
/// Where every rank reduces everything it does so in steps of this:
/// what was put into the slot is near when it is reduced.
constexpr std::size_t kWholeStepBytes = 64 * 1024;

struct Range {
  std::size_t at = 0, count = 0;  // elements

  bool operator==(const Range&) const = default;
};

/// Rank r's part of `count` elements that are split evenly.
Range share_of(std::size_t count, int rank, int size) {
  const auto ranks = static_cast<std::size_t>(size), r = static_cast<std::size_t>(rank);
  const std::size_t each = (count + ranks - 1) / ranks;
  const std::size_t grains = (each + kShareGrain - 1) / kShareGrain * kShareGrain;
  const std::size_t at = std::min(count, r * grains);
  return {at, std::min(grains, count - at)};
}

/// The `step`-th part of `range`, at most `max` elements long.
Range part_of(Range range, std::size_t step, std::size_t max) {
  const std::size_t at = std::min(range.count, step * max);
  return {range.at + at, std::min(max, range.count - at)};
}

/// Where each rank's part begins, of counts that are all `each` when there are none.
std::vector<Range> ranges_of(std::span<const std::size_t> counts, std::size_t each, int size) {
  std::vector<Range> ranges;
  std::size_t at = 0;
  for (int r = 0; r < size; ++r) {
    const std::size_t count = counts.empty() ? each : counts[static_cast<std::size_t>(r)];
    ranges.push_back({at, count});
    at += count;
  }
  return ranges;
}

std::size_t max_of(const std::vector<Range>& ranges) {
  std::size_t max = 0;
  for (const Range& range : ranges) max = std::max(max, range.count);
  return max;
}

std::size_t steps_for(std::size_t count, std::size_t each) {
  return std::max<std::size_t>(1, (count + each - 1) / each);
}

const std::byte* in(const Call& call, std::size_t element) {
  return static_cast<const std::byte*>(call.input) + element * size_of(call.type);
}

std::byte* out(const Call& call, std::size_t element) {
  return static_cast<std::byte*>(call.output) + element * size_of(call.type);
}

}  // namespace

SharedCalls::SharedCalls(SharedRounds& rounds, std::size_t whole_bytes)
    : rounds_(&rounds),
      rank_(rounds.group().rank()),
      size_(rounds.group().size()),
      slot_bytes_(rounds.group().segment().slot_bytes()),
      whole_bytes_(whole_bytes),
      inputs_(static_cast<std::size_t>(size_)) {}

void SharedCalls::run(const Call& call) {
  rounds_->group().throw_if_failed();
  switch (call.kind) {
    case CallKind::all_reduce:
    case CallKind::reduce:
      rounds_->begin(call);
      return call.bytes() <= whole_bytes_ ? reduce_whole(call) : reduce_in_shares(call);
    case CallKind::broadcast:
      rounds_->begin(call);
      return broadcast(call);
    case CallKind::all_gather:
      rounds_->begin(call);
      return all_gather(call);
    case CallKind::reduce_scatter:
      rounds_->begin(call);
      return reduce_scatter(call);
    case CallKind::all_to_all:
      return all_to_all(call);
    case CallKind::barrier:
    case CallKind::send:
    case CallKind::receive:
      rounds_->begin(call);
      return barrier();
  }
}

void SharedCalls::barrier() {
  const std::uint64_t phase = rounds_->phase();
  rounds_->publish();
  rounds_->await(phase);
}

template <class Steps, class Put, class Take>
void SharedCalls::in_two(const Steps& steps, const Put& put, const Take& take) {
  const std::uint64_t first = rounds_->phase();
  put(std::size_t{0}, rounds_->stage());
  rounds_->publish();
  rounds_->await(first);
  const std::size_t all = steps();
  for (std::size_t step = 1; step < all; ++step) {
    put(step, rounds_->stage());
    rounds_->publish();
    take(step - 1, first + step - 1);
    rounds_->await(first + step);
  }
  take(all - 1, first + all - 1);
}

template <class Put, class Reduce, class Take>
void SharedCalls::in_three(std::size_t steps, const Put& put, const Reduce& reduce, const Take& take) {
  const std::uint64_t first = rounds_->phase();
  for (std::size_t step = 0; step < steps; ++step) {
    put(step, rounds_->stage());
    if (step >= 1) {
      rounds_->await(first + step - 1);
      reduce(step - 1, first + step - 1);
    }
    if (step >= 2) take(step - 2, first + step - 2);
    rounds_->publish();
  }
  rounds_->await(first + steps - 1);
  reduce(steps - 1, first + steps - 1);
  if (steps >= 2) take(steps - 2, first + steps - 2);
  rounds_->publish();
  rounds_->await(first + steps);
  take(steps - 1, first + steps - 1);
}

void SharedCalls::reduce_slots(const Call& call, std::uint64_t phase, std::size_t at, const void* own,
                               void* output, std::size_t count) {
  for (int r = 0; r < size_; ++r)
    inputs_[static_cast<std::size_t>(r)] = r == rank_ ? own : rounds_->slot(r, phase) + at;
  reduce({call.type, call.operation, size_}, output, inputs_, count);
}

void SharedCalls::reduce_whole(const Call& call) {
  const std::size_t width = size_of(call.type), max = std::min(slot_bytes_, kWholeStepBytes) / width;
  const bool gets = call.kind == CallKind::all_reduce || call.root == rank_;
  const auto part = [&](std::size_t step) { return part_of({0, call.count}, step, max); };
  in_two([&] { return steps_for(call.count, max); },
         [&](std::size_t step, std::byte* slot) {
           const Range range = part(step);
           copy_bytes(slot, in(call, range.at), range.count * width);
         },
         [&](std::size_t step, std::uint64_t phase) {
           const Range range = part(step);
           if (gets) reduce_slots(call, phase, 0, in(call, range.at), out(call, range.at), range.count);
         });
}

void SharedCalls::reduce_in_shares(const Call& call) {
  const std::size_t width = size_of(call.type), max = slot_bytes_ / width;
  const bool gets = call.kind == CallKind::all_reduce || call.root == rank_;
  const auto part = [&](std::size_t step) { return part_of({0, call.count}, step, max); };
  const auto put = [&](std::size_t step, std::byte* slot) {
    const Range all = part(step);
    for (int r = 0; r < size_; ++r) {
      const Range share = share_of(all.count, r, size_);
      if (r != rank_) copy_bytes(slot + share.at * width, in(call, all.at + share.at), share.count * width);
    }
  };
  const bool streams = gets && call.bytes() >= kStreamBytes && call.output != call.input;
  const auto give = [&](std::size_t at, const void* from, std::size_t count) {
    if (streams)
      copy_past_caches(out(call, at), from, count * width);
    else
      copy_bytes(out(call, at), from, count * width);
  };
  const auto reduce_share = [&](std::size_t step, std::uint64_t phase) {
    const Range all = part(step), share = share_of(all.count, rank_, size_);
    std::byte* own = rounds_->own_slot(phase);
    for (std::size_t from = 0; from < share.count; from += kPieceBytes / width) {
      const std::size_t count = std::min(kPieceBytes / width, share.count - from), at = share.at + from;
      reduce_slots(call, phase, at * width, in(call, all.at + at), own + at * width, count);
      if (gets) give(all.at + at, own + at * width, count);
    }
  };
  const auto take = [&](std::size_t step, std::uint64_t phase) {
    const Range all = part(step);
    for (int r = 0; gets && r < size_; ++r) {
      const Range share = share_of(all.count, r, size_);
      if (r != rank_) give(all.at + share.at, rounds_->slot(r, phase) + share.at * width, share.count);
    }
  };
  in_three(steps_for(call.count, max), put, reduce_share, take);
}

void SharedCalls::broadcast(const Call& call) {
  const std::size_t width = size_of(call.type), max = slot_bytes_ / width;
  const auto part = [&](std::size_t step) { return part_of({0, call.count}, step, max); };
  in_two([&] { return steps_for(call.count, max); },
         [&](std::size_t step, std::byte* slot) {
           const Range range = part(step);
           if (rank_ == call.root) copy_bytes(slot, in(call, range.at), range.count * width);
         },
         [&](std::size_t step, std::uint64_t phase) {
           const Range range = part(step);
           if (rank_ != call.root)
             copy_bytes(out(call, range.at), rounds_->slot(call.root, phase), range.count * width);
         });
}

void SharedCalls::all_gather(const Call& call) {
  const std::size_t width = size_of(call.type), max = slot_bytes_ / width;
  const std::vector<Range> ranges = ranges_of(call.counts, call.count, size_);
  const Range own = ranges[static_cast<std::size_t>(rank_)];
  copy_bytes(out(call, own.at), call.input, own.count * width);
  in_two([&] { return steps_for(max_of(ranges), max); },
         [&](std::size_t step, std::byte* slot) {
           const Range range = part_of({0, own.count}, step, max);
           copy_bytes(slot, in(call, range.at), range.count * width);
         },
         [&](std::size_t step, std::uint64_t phase) {
           for (int r = 0; r < size_; ++r) {
             const Range range = part_of(ranges[static_cast<std::size_t>(r)], step, max);
             if (r != rank_) copy_bytes(out(call, range.at), rounds_->slot(r, phase), range.count * width);
           }
         });
}

void SharedCalls::reduce_scatter(const Call& call) {
  const std::size_t width = size_of(call.type);
  const std::size_t max = slot_bytes_ / width / static_cast<std::size_t>(size_);
  const std::vector<Range> ranges = ranges_of(call.counts, call.count, size_);
  const Range own = ranges[static_cast<std::size_t>(rank_)];
  in_two([&] { return steps_for(max_of(ranges), max); },
         [&](std::size_t step, std::byte* slot) {
           for (int r = 0; r < size_; ++r) {
             const Range range = part_of(ranges[static_cast<std::size_t>(r)], step, max);
             const std::size_t at = static_cast<std::size_t>(r) * max * width;
             if (r != rank_) copy_bytes(slot + at, in(call, range.at), range.count * width);
           }
         },
         [&](std::size_t step, std::uint64_t phase) {
           const Range range = part_of(own, step, max);
           const std::size_t at = static_cast<std::size_t>(rank_) * max * width;
           for (std::size_t from = 0; from < range.count; from += kPieceBytes / width) {
             const std::size_t count = std::min(kPieceBytes / width, range.count - from);
             reduce_slots(call, phase, at + from * width, in(call, range.at + from),
                          out(call, range.at - own.at + from), count);
           }
         });
}

void SharedCalls::all_to_all(const Call& call) {
  const std::size_t width = size_of(call.type), ranks = static_cast<std::size_t>(size_);
  const std::vector<Range> from = ranges_of(call.send_counts, call.count, size_);
  const std::vector<Range> to = ranges_of(call.counts, call.count, size_);
  // In front of the pieces: how many elements there are for each rank in all.
  const std::size_t front = (ranks * sizeof(std::uint64_t) + 63) / 64 * 64;
  const std::size_t max = (slot_bytes_ - front) / ranks / 64 * 64 / width;
  const auto piece = [&](int r) { return front + static_cast<std::size_t>(r) * max * width; };
  if (call.input == call.output && !std::ranges::equal(from, to))
    throw Error(ErrorKind::config, to_string(call) + ": in place, but the send and receive buffers differ");
  rounds_->begin(call, max_of(from));
  const Range self = from[static_cast<std::size_t>(rank_)];
  expect_counts(rank_, self.count, to[static_cast<std::size_t>(rank_)].count);
  copy_bytes(out(call, to[static_cast<std::size_t>(rank_)].at), in(call, self.at), self.count * width);
  const auto put = [&](std::size_t step, std::byte* slot) {
    for (int r = 0; r < size_; ++r) {
      const Range range = part_of(from[static_cast<std::size_t>(r)], step, max);
      const std::uint64_t count = from[static_cast<std::size_t>(r)].count;
      std::memcpy(slot + static_cast<std::size_t>(r) * sizeof count, &count, sizeof count);
      if (r != rank_) copy_bytes(slot + piece(r), in(call, range.at), range.count * width);
    }
  };
  const auto take = [&](std::size_t step, std::uint64_t phase) {
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      const std::byte* slot = rounds_->slot(r, phase);
      std::uint64_t count = 0;
      std::memcpy(&count, slot + static_cast<std::size_t>(rank_) * sizeof count, sizeof count);
      expect_counts(r, count, to[static_cast<std::size_t>(r)].count);
      const Range range = part_of(to[static_cast<std::size_t>(r)], step, max);
      copy_bytes(out(call, range.at), slot + piece(rank_), range.count * width);
    }
  };
  in_two([&] { return steps_for(rounds_->max_extent(), max); }, put, take);
}

void SharedCalls::expect_counts(int other, std::uint64_t sends, std::uint64_t expects) {
  if (sends == expects) return;
  SharedGroup& group = rounds_->group();
  group.fail_and_throw(Error(ErrorKind::config, group.prefix() + "all_to_all: rank " + std::to_string(other) +
                                                    " sends " + std::to_string(sends) + " elements to rank " +
                                                    std::to_string(rank_) + ", which expects " +
                                                    std::to_string(expects)));
}

}  // namespace fleetrun::collective
