#include "collective/cpu/hierarchical_communicator.h"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "collective/base/call_thread.h"
#include "collective/cpu/convert.h"
#include "collective/cpu/copy.h"
#include "collective/cpu/reduce_kernels.h"
#include "runtime/base/error_copy.h"

namespace fleetrun::collective {
namespace {

std::size_t sum_of(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

class HierarchicalCommunicator : public Communicator {
 public:
  HierarchicalCommunicator(Place place, Grouping grouping, Levels levels);
  ~HierarchicalCommunicator() override { calls_.finish(); }

  const Place& place() const noexcept override { return place_; }
  void run(const Call& call) override {
    check(call, place_.rank, place_.size);
    calls_.finish();
    make(call);
  }
  std::unique_ptr<Work> start(const Call& call) override {
    check(call, place_.rank, place_.size);
    return calls_.start(call);
  }
  void abort(const Error& why) noexcept override;

 private:
  struct Where {
    int group, index;  // within the group
  };

  void make(const Call& call);
  void make_in_levels(const Call& call);
  bool leads() const { return levels_.outer != nullptr; }
  const Where& own() const { return where_[static_cast<std::size_t>(place_.rank)]; }
  const Where& of(int rank) const { return where_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& mates() const {
    return grouping_.groups[static_cast<std::size_t>(own().group)].ranks;
  }
  void within(const Call& call) {
    if (levels_.inner) levels_.inner->run(call);
  }
  /// This rank's group added up in `output` of its first rank, which others need not have.
  void reduce_within(const Call& call, void* output);
  void reduce_half_within(const Call& call, void* output);
  /// What `call` asks of the group's sums.
  Call among_groups(const Call& call) const;
  /// The last step of a mean.
  void divide(const Call& call, void* sum, std::size_t count) const;

  void all_reduce(const Call& call);
  void broadcast(const Call& call);
  void reduce(const Call& call);
  void all_gather(const Call& call);
  void reduce_scatter(const Call& call);

  /// Elements of each rank, as call.counts or call.count say.
  std::vector<std::size_t> counts_of(const Call& call) const;
  /// The same in the order of the groups; `of_groups`: summed up by group.
  std::vector<std::size_t> in_group_order(const std::vector<std::size_t>& counts,
                                          std::vector<std::size_t>& of_groups) const;

  const Place place_;
  const Grouping grouping_;
  Levels levels_;
  std::vector<Where> where_;  // by rank
  std::vector<int> order_;    // the ranks in the order of the groups

  std::mutex mutex_;
  std::condition_variable was_aborted_;
  std::optional<Error> aborted_;
  CallThread calls_;
};

HierarchicalCommunicator::HierarchicalCommunicator(Place place, Grouping grouping, Levels levels)
    : place_(std::move(place)),
      grouping_(std::move(grouping)),
      levels_(std::move(levels)),
      where_(static_cast<std::size_t>(place_.size)),
      calls_([this](const Call& call) { make(call); }) {
  for (std::size_t group = 0; group < grouping_.groups.size(); ++group) {
    int index = 0;
    for (const int rank : grouping_.groups[group].ranks) {
      where_[static_cast<std::size_t>(rank)] = {static_cast<int>(group), index++};
      order_.push_back(rank);
    }
  }
}

void HierarchicalCommunicator::abort(const Error& why) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_) aborted_ = separate_copy(why);
    was_aborted_.notify_all();
  }
  for (Communicator* level : {levels_.inner.get(), levels_.outer.get(), levels_.flat.get()})
    if (level) level->abort(why);
}

void HierarchicalCommunicator::make(const Call& call) {
  try {
    make_in_levels(call);
  } catch (const Error& error) {
    Error why = separate_copy(error);
    {
      std::unique_lock lock(mutex_);
      if (error.kind() == ErrorKind::network)
        was_aborted_.wait_for(lock, kForTheCause, [&] { return aborted_.has_value(); });
      if (aborted_) throw separate_copy(*aborted_);
    }
    why.while_doing(to_string(call) + " of group " + place_.group);
    abort(why);
    throw separate_copy(why);
  }
}

void HierarchicalCommunicator::make_in_levels(const Call& call) {
  switch (call.kind) {
    case CallKind::all_reduce:
      return all_reduce(call);
    case CallKind::broadcast:
      return broadcast(call);
    case CallKind::reduce:
      return reduce(call);
    case CallKind::all_gather:
      return all_gather(call);
    case CallKind::reduce_scatter:
      return reduce_scatter(call);
    case CallKind::barrier:
      within(call);
      if (leads()) levels_.outer->run(call);
      return within(call);
    default:
      return levels_.flat->run(call);
  }
}

/// Sums of float16 are of values divided by this power of two, which loses nothing and overflows nowhere.
double half_divisor(int ranks) {
  return static_cast<double>(std::bit_ceil(static_cast<unsigned>(ranks)));
}

void HierarchicalCommunicator::reduce_half_within(const Call& call, void* output) {
  std::vector<float> sums(call.count);
  const Vectors vectors = best_vectors();
  convert(call.type, call.input, DataType::float32, sums.data(), call.count, 1, vectors);
  within({.kind = CallKind::reduce, .input = sums.data(), .output = sums.data(), .count = call.count});
  if (leads())
    convert(DataType::float32, sums.data(), call.type, output, call.count, 1 / half_divisor(place_.size),
            vectors);
}

void HierarchicalCommunicator::reduce_within(const Call& call, void* output) {
  if (is_half_mean(call)) return reduce_half_within(call, output);
  Call inner = call;
  inner.kind = CallKind::reduce;
  if (inner.operation == Operation::avg) inner.operation = Operation::sum;
  inner.output = output;
  inner.root = 0;
  if (levels_.inner)
    levels_.inner->run(inner);
  else
    copy_bytes(output, call.input, call.bytes());
}

Call HierarchicalCommunicator::among_groups(const Call& call) const {
  Call outer = call;
  if (call.operation == Operation::avg) outer.operation = Operation::sum;
  return outer;
}

void HierarchicalCommunicator::divide(const Call& call, void* sum, std::size_t count) const {
  if (call.operation != Operation::avg) return;
  if (is_half_mean(call)) {
    convert(call.type, sum, call.type, sum, count, half_divisor(place_.size) / place_.size, best_vectors());
    return;
  }
  const void* const sums[] = {sum};
  collective::reduce({call.type, Operation::avg, place_.size}, sum, sums, count);
}

void HierarchicalCommunicator::all_reduce(const Call& call) {
  reduce_within(call, call.output);
  if (leads()) {
    Call outer = among_groups(call);
    outer.input = call.output;
    levels_.outer->run(outer);
    divide(call, call.output, call.count);
  }
  within({.kind = CallKind::broadcast,
          .type = call.type,
          .input = call.output,
          .output = call.output,
          .count = call.count});
}

void HierarchicalCommunicator::broadcast(const Call& call) {
  const Where& root = of(call.root);
  const bool is_of_root = own().group == root.group;
  Call here = call;
  if (place_.rank != call.root) here.input = call.output;
  if (is_of_root) {
    here.root = root.index;
    within(here);
  }
  if (leads()) {
    Call outer = here;
    // The root's own buffer is its input.
    if (place_.rank == call.root) outer.output = const_cast<void*>(call.input);
    outer.root = root.group;
    levels_.outer->run(outer);
  }
  if (is_of_root) return;
  here.root = 0;
  within(here);
}

void HierarchicalCommunicator::reduce(const Call& call) {
  const Where& root = of(call.root);
  const bool is_root = place_.rank == call.root;
  std::vector<std::byte> scratch(leads() && !is_root ? call.bytes() : 0);
  void* sum = is_root ? call.output : scratch.data();
  reduce_within(call, leads() ? sum : nullptr);
  if (leads()) {
    Call outer = among_groups(call);
    outer.input = sum;
    outer.output = sum;
    outer.root = root.group;
    levels_.outer->run(outer);
    if (own().group == root.group) divide(call, sum, call.count);
  }
  if (own().group != root.group || root.index == 0) return;
  if (leads())
    within(
        {.kind = CallKind::send, .type = call.type, .input = sum, .count = call.count, .root = root.index});
  if (is_root)
    within({.kind = CallKind::receive,
            .type = call.type,
            .output = call.output,
            .count = call.count,
            .root = 0});
}

std::vector<std::size_t> HierarchicalCommunicator::counts_of(const Call& call) const {
  if (!call.counts.empty()) return {call.counts.begin(), call.counts.end()};
  return std::vector<std::size_t>(where_.size(), call.count);
}

std::vector<std::size_t> HierarchicalCommunicator::in_group_order(const std::vector<std::size_t>& counts,
                                                                  std::vector<std::size_t>& of_groups) const {
  of_groups.assign(grouping_.groups.size(), 0);
  std::vector<std::size_t> ordered;
  for (const int rank : order_) {
    ordered.push_back(counts[static_cast<std::size_t>(rank)]);
    of_groups[static_cast<std::size_t>(of(rank).group)] += ordered.back();
  }
  return ordered;
}

void HierarchicalCommunicator::all_gather(const Call& call) {
  const std::size_t element = size_of(call.type);
  const std::vector<std::size_t> counts = counts_of(call);
  std::vector<std::size_t> of_groups, of_mates;
  in_group_order(counts, of_groups);
  for (const int rank : mates()) of_mates.push_back(counts[static_cast<std::size_t>(rank)]);
  const std::size_t total = sum_of(counts);
  // All shares in the order of the groups, which is the order of ranks where each group's are consecutive.
  const bool is_ordered = std::is_sorted(order_.begin(), order_.end());
  std::vector<std::byte> scratch(is_ordered ? 0 : total * element);
  void* all = is_ordered ? call.output : scratch.data();
  const std::size_t before =
      std::accumulate(of_groups.begin(), of_groups.begin() + own().group, std::size_t{0}) * element;
  void* group = bytes_at(all, before);
  if (levels_.inner)
    levels_.inner->run({.kind = CallKind::all_gather,
                        .type = call.type,
                        .input = call.input,
                        .output = group,
                        .counts = of_mates});
  else
    copy_bytes(group, call.input, counts[static_cast<std::size_t>(place_.rank)] * element);
  if (leads())
    levels_.outer->run({.kind = CallKind::all_gather,
                        .type = call.type,
                        .input = group,
                        .output = all,
                        .counts = of_groups});
  within({.kind = CallKind::broadcast, .type = call.type, .input = all, .output = all, .count = total});
  if (is_ordered) return;
  std::vector<std::size_t> offsets(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), std::size_t{0});
  std::size_t from = 0;
  for (const int rank : order_) {
    const auto r = static_cast<std::size_t>(rank);
    copy_bytes(bytes_at(call.output, offsets[r] * element), scratch.data() + from, counts[r] * element);
    from += counts[r] * element;
  }
}

void HierarchicalCommunicator::reduce_scatter(const Call& call) {
  const std::size_t element = size_of(call.type);
  const std::vector<std::size_t> counts = counts_of(call);
  const std::size_t total = sum_of(counts), share = counts[static_cast<std::size_t>(place_.rank)];
  std::vector<std::size_t> of_groups;
  in_group_order(counts, of_groups);
  const bool is_ordered = std::is_sorted(order_.begin(), order_.end());
  std::vector<std::byte> ordered(is_ordered ? 0 : total * element);
  if (!is_ordered) {
    std::vector<std::size_t> offsets(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), std::size_t{0});
    std::size_t to = 0;
    for (const int rank : order_) {
      const auto r = static_cast<std::size_t>(rank);
      copy_bytes(ordered.data() + to, static_cast<const std::byte*>(call.input) + offsets[r] * element,
                 counts[r] * element);
      to += counts[r] * element;
    }
  }
  Call whole = call;
  whole.input = is_ordered ? call.input : ordered.data();
  whole.count = total;
  whole.counts = {};
  std::vector<std::byte> sums(leads() ? total * element : 0);
  reduce_within(whole, leads() ? sums.data() : nullptr);

  const std::size_t own_group = of_groups[static_cast<std::size_t>(own().group)];
  std::vector<std::byte> group(leads() ? own_group * element : 0);
  if (leads()) {
    Call outer = among_groups(call);
    outer.input = sums.data();
    outer.output = group.data();
    outer.counts = of_groups;
    levels_.outer->run(outer);
    divide(call, group.data(), own_group);
  }
  if (!levels_.inner) return copy_bytes(call.output, group.data(), share * element);
  std::vector<std::size_t> from(mates().size(), 0), to(mates().size(), 0);
  from[0] = share;
  if (leads())
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = counts[static_cast<std::size_t>(mates()[i])];
  levels_.inner->run({.kind = CallKind::all_to_all,
                      .type = call.type,
                      .input = group.data(),
                      .output = call.output,
                      .counts = from,
                      .send_counts = to});
}

}  // namespace

std::unique_ptr<Communicator> make_hierarchical_communicator(Place place, Grouping grouping, Levels levels) {
  return std::make_unique<HierarchicalCommunicator>(std::move(place), std::move(grouping), std::move(levels));
}

}  // namespace fleetrun::collective
