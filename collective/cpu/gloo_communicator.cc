#include "collective/cpu/gloo_communicator.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>

#include "collective/base/call_thread.h"
#include "collective/cpu/copy.h"
#include "collective/cpu/gloo_context.h"
#include "collective/cpu/rank_links.h"
#include "collective/cpu/rank_mesh.h"
#include "collective/cpu/reduce_kernels.h"
#include "runtime/base/error_copy.h"

namespace fleetrun::collective {
namespace {

using Clock = RankLinks::Clock;

// Gloo's own slots have 1 to 8 in the highest byte.
constexpr std::uint64_t kTagSlot = std::uint64_t{0x80} << 56, kDirectSlot = std::uint64_t{0x81} << 56,
                        kPairSlot = std::uint64_t{0x82} << 56;

/// FNV-1a.
std::uint32_t digest_of(const CallTag& tag) {
  std::uint64_t hash = 0xcbf29ce484222325;
  unsigned char bytes[sizeof tag];
  std::memcpy(bytes, &tag, sizeof tag);
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

std::vector<std::size_t> counts_of(std::span<const std::size_t> counts, std::size_t each, int ranks) {
  if (counts.empty()) return std::vector<std::size_t>(static_cast<std::size_t>(ranks), each);
  return {counts.begin(), counts.end()};
}

/// Calls `with` an element type of so many bytes: what Gloo wants to know of a type.
template <class With>
void with_element(std::size_t bytes, const With& with) {
  if (bytes == 1) return with(std::uint8_t{});
  if (bytes == 2) return with(std::uint16_t{});
  if (bytes == 4) return with(std::uint32_t{});
  with(std::uint64_t{});
}

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(Place place, std::vector<SealedSocket> mesh, const GlooOptions& options)
      : place_(place),
        options_(options),
        links_(place, std::move(mesh)),
        context_(make_gloo_context(links_, [this](const std::function<bool()>& holds) { wait(holds); })),
        sent_(static_cast<std::size_t>(place.size)),
        received_(static_cast<std::size_t>(place.size)),
        calls_([this](const Call& call) { make(call); }) {}
  ~GlooCommunicator() override { calls_.finish(); }

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
  void abort(const Error& why) noexcept override { links_.abort(why); }

 private:
  // The exchange of tags with the neighbours.
  struct Neighbours {
    CallTag own, left;
    Completions completions;
    bool are_equal = false;
  };

  std::string prefix() const { return "group " + place_.group + ": "; }
  std::size_t rank() const { return static_cast<std::size_t>(place_.rank); }
  std::size_t size() const { return static_cast<std::size_t>(place_.size); }
  int left() const { return (place_.rank + place_.size - 1) % place_.size; }
  int right() const { return (place_.rank + 1) % place_.size; }

  void make(const Call& call);
  void make_together(const Call& call);
  void wait(const std::function<bool()>& holds);
  void compare(const CallTag& theirs, int whose);
  [[noreturn]] void be_late();

  void all_reduce(const Call& call);
  void all_reduce_by_shares(const Call& call);
  void broadcast(const Call& call);
  void reduce(const Call& call);
  void all_gather(const Call& call);
  void reduce_scatter(const Call& call);
  void all_to_all(const Call& call);
  void send(const Call& call);
  void receive(const Call& call);
  /// Share r of `input` to rank r, and rank r's into share r of `output`; counts in elements.
  void exchange(const Call& call, const void* input, const std::vector<std::size_t>& out, void* output,
                const std::vector<std::size_t>& in);

  const Place place_;
  const GlooOptions options_;
  RankLinks links_;
  std::shared_ptr<gloo::Context> context_;      // also held by Gloo while it runs
  std::uint64_t number_ = 0;                    // of calls that all make together
  std::vector<std::uint64_t> sent_, received_;  // to and from each rank, by send and receive
  std::optional<Error> failure_;

  // Of the call under way.
  Clock::time_point deadline_;
  CallTag tag_;
  Neighbours* neighbours_ = nullptr;
  CallThread calls_;
};

void GlooCommunicator::make(const Call& call) {
  if (failure_) throw separate_copy(*failure_);
  deadline_ = Clock::now() + options_.call_within.time();
  try {
    if (call.kind == CallKind::send)
      send(call);
    else if (call.kind == CallKind::receive)
      receive(call);
    else
      make_together(call);
  } catch (const Error& error) {
    failure_ = separate_copy(error);
  } catch (const std::exception& error) {
    failure_ = Error(ErrorKind::network, prefix() + "Gloo: " + error.what());
  }
  neighbours_ = nullptr;
  if (!failure_) return;
  links_.abort(*failure_);
  throw separate_copy(*failure_);
}

void GlooCommunicator::make_together(const Call& call) {
  tag_ = tag_of(call, number_++);
  Neighbours neighbours;
  neighbours.own = tag_;
  if (place_.size > 1) {
    neighbours_ = &neighbours;
    links_.receive(left(), kTagSlot | tag_.number, &neighbours.left, sizeof(CallTag), neighbours.completions);
    links_.send(right(), kTagSlot | tag_.number, &neighbours.own, sizeof(CallTag), neighbours.completions);
  }
  switch (call.kind) {
    case CallKind::all_reduce:
      all_reduce(call);
      break;
    case CallKind::broadcast:
      broadcast(call);
      break;
    case CallKind::reduce:
      reduce(call);
      break;
    case CallKind::all_gather:
      all_gather(call);
      break;
    case CallKind::reduce_scatter:
      reduce_scatter(call);
      break;
    case CallKind::all_to_all:
      all_to_all(call);
      break;
    default: {
      gloo::BarrierOptions options(context_);
      options.setTag(digest_of(tag_));
      gloo::barrier(options);
    }
  }
  if (neighbours_)
    wait([&] { return neighbours.completions.sends > 0 && neighbours.completions.receives > 0; });
}

/// Bytes of the neighbours' tags move with all others, and are looked at as soon as they are there.
void GlooCommunicator::wait(const std::function<bool()>& holds) {
  for (;;) {
    if (neighbours_ && !neighbours_->are_equal && neighbours_->completions.receives > 0) {
      compare(neighbours_->left, left());
      neighbours_->are_equal = true;
    }
    if (holds()) return;
    if (Clock::now() >= deadline_) be_late();
    links_.progress(deadline_);
  }
}

void GlooCommunicator::compare(const CallTag& theirs, int whose) {
  if (theirs == tag_) return;
  const auto says = [](int rank, const CallTag& tag) {
    return "rank " + std::to_string(rank) + " calls " + to_string(tag);
  };
  const std::string mine = says(place_.rank, tag_), other = says(whose, theirs);
  throw Error(ErrorKind::config, prefix() + (whose < place_.rank ? other + "; " + mine : mine + "; " + other),
              "all ranks of a group make the same calls in the same order");
}

void GlooCommunicator::be_late() {
  const std::string within = ", within " + std::to_string(options_.call_within.time().count()) + " ms";
  const int awaited = links_.awaited();
  if (neighbours_ && neighbours_->completions.receives == 0)
    throw Error(ErrorKind::timeout,
                prefix() + "rank " + std::to_string(left()) + " did not come to " + to_string(tag_) + within);
  for (const auto until = Clock::now() + kForTheCause; Clock::now() < until;) links_.progress(until);
  throw Error(ErrorKind::timeout, prefix() + "rank " + std::to_string(awaited) + " is still waited for in " +
                                      to_string(tag_) + within);
}

void GlooCommunicator::all_reduce(const Call& call) {
  if (is_half_mean(call)) return all_reduce_by_shares(call);
  copy_bytes(call.output, call.input, call.bytes());
  if (call.count == 0) return;
  const bool is_mean = call.operation == Operation::avg;
  const Reduction step{call.type, is_mean ? Operation::sum : call.operation};
  gloo::AllreduceOptions options(context_);
  with_element(size_of(call.type), [&](auto element) {
    options.setOutput(static_cast<decltype(element)*>(call.output), call.count);
  });
  options.setReduceFunction([step](void* output, const void* a, const void* b, std::size_t count) {
    const void* const inputs[] = {a, b};
    collective::reduce(step, output, inputs, count);
  });
  options.setTag(digest_of(tag_));
  options.setAlgorithm(call.bytes() <= options_.small_bytes ? gloo::AllreduceOptions::Algorithm::BCUBE
                                                            : gloo::AllreduceOptions::Algorithm::RING);
  gloo::allreduce(options);
  if (!is_mean) return;
  const void* const sum[] = {call.output};
  collective::reduce({call.type, Operation::avg, place_.size}, call.output, sum, call.count);
}

/// A rank adds up its share of all inputs in one pass: the sum is never one of the type's values.
void GlooCommunicator::all_reduce_by_shares(const Call& call) {
  std::vector<std::size_t> counts(size(), call.count / size());
  counts.back() += call.count % size();
  Call share = call;
  share.counts = counts;
  share.output = bytes_at(call.output, counts[0] * rank() * size_of(call.type));
  reduce_scatter(share);
  share.input = share.output;
  share.output = call.output;
  all_gather(share);
}

void GlooCommunicator::broadcast(const Call& call) {
  if (call.count == 0) return;
  gloo::BroadcastOptions options(context_);
  // At the root nothing is written there.
  void* data = place_.rank == call.root ? const_cast<void*>(call.input) : call.output;
  options.setOutput(static_cast<std::uint8_t*>(data), call.bytes());
  options.setRoot(call.root);
  options.setTag(digest_of(tag_));
  gloo::broadcast(options);
}

void GlooCommunicator::reduce(const Call& call) {
  if (call.count == 0) return;
  const bool is_root = place_.rank == call.root;
  std::vector<std::byte> scratch(is_root ? 0 : call.bytes());
  void* output = is_root ? call.output : scratch.data();
  if (is_half_mean(call)) {
    Call everywhere = call;
    everywhere.output = output;
    return all_reduce_by_shares(everywhere);
  }
  copy_bytes(output, call.input, call.bytes());
  const bool is_mean = call.operation == Operation::avg;
  const Reduction step{call.type, is_mean ? Operation::sum : call.operation};
  gloo::ReduceOptions options(context_);
  with_element(size_of(call.type),
               [&](auto element) { options.setOutput(static_cast<decltype(element)*>(output), call.count); });
  options.setRoot(call.root);
  options.setReduceFunction([step](void* into, const void* a, const void* b, std::size_t count) {
    const void* const inputs[] = {a, b};
    collective::reduce(step, into, inputs, count);
  });
  options.setTag(digest_of(tag_));
  gloo::reduce(options);
  if (!is_mean || !is_root) return;
  const void* const sum[] = {output};
  collective::reduce({call.type, Operation::avg, place_.size}, output, sum, call.count);
}

void GlooCommunicator::all_gather(const Call& call) {
  const std::vector<std::size_t> counts = counts_of(call.counts, call.count, place_.size);
  const std::size_t before = std::accumulate(counts.begin(), counts.begin() + place_.rank, std::size_t{0});
  const std::size_t element = size_of(call.type);
  if (std::accumulate(counts.begin(), counts.end(), std::size_t{0}) == 0) return;
  copy_bytes(bytes_at(call.output, before * element), call.input, counts[rank()] * element);
  gloo::AllgathervOptions options(context_);
  with_element(element, [&](auto of) { options.setOutput(static_cast<decltype(of)*>(call.output), counts); });
  options.setTag(digest_of(tag_));
  gloo::allgatherv(options);
}

void GlooCommunicator::exchange(const Call& call, const void* input, const std::vector<std::size_t>& out,
                                void* output, const std::vector<std::size_t>& in) {
  const std::size_t element = size_of(call.type);
  const std::uint64_t slot = kDirectSlot | std::uint64_t{digest_of(tag_)} << 24;
  Completions completions;
  std::size_t expected = 0, from = 0, to = 0;
  try {
    for (std::size_t r = 0; r < size(); from += in[r++] * element) {
      if (r == rank() || in[r] == 0) continue;
      links_.receive(static_cast<int>(r), slot, bytes_at(output, from), in[r] * element, completions);
      ++expected;
    }
    std::size_t sends = 0;
    for (std::size_t r = 0; r < size(); to += out[r++] * element) {
      if (r == rank() || out[r] == 0) continue;
      links_.send(static_cast<int>(r), slot, bytes_at(input, to), out[r] * element, completions);
      ++sends;
    }
    wait([&] { return completions.receives == expected && completions.sends == sends; });
  } catch (...) {
    links_.withdraw(completions);
    throw;
  }
  const std::size_t own_from =
      std::accumulate(out.begin(), out.begin() + place_.rank, std::size_t{0}) * element;
  const std::size_t own_to = std::accumulate(in.begin(), in.begin() + place_.rank, std::size_t{0}) * element;
  copy_bytes(bytes_at(output, own_to), bytes_at(input, own_from),
             std::min(in[rank()], out[rank()]) * element);
}

void GlooCommunicator::reduce_scatter(const Call& call) {
  const std::vector<std::size_t> counts = counts_of(call.counts, call.count, place_.size);
  const std::size_t share = counts[rank()], bytes = share * size_of(call.type);
  std::vector<std::byte> scratch(bytes * size());
  exchange(call, call.input, counts, scratch.data(), std::vector<std::size_t>(size(), share));
  std::vector<const void*> inputs;
  for (std::size_t r = 0; r < size(); ++r) inputs.push_back(scratch.data() + r * bytes);
  if (share > 0) collective::reduce({call.type, call.operation, place_.size}, call.output, inputs, share);
}

void GlooCommunicator::all_to_all(const Call& call) {
  exchange(call, call.input, counts_of(call.send_counts, call.count, place_.size), call.output,
           counts_of(call.counts, call.count, place_.size));
}

void GlooCommunicator::send(const Call& call) {
  const std::uint64_t slot = kPairSlot | sent_[static_cast<std::size_t>(call.root)]++;
  tag_ = tag_of(call, slot & ~kPairSlot);
  Completions completions;
  try {
    links_.send(call.root, slot, &tag_, sizeof tag_, completions);
    links_.send(call.root, slot, call.input, call.bytes(), completions);
    wait([&] { return completions.sends == 2; });
  } catch (...) {
    links_.withdraw(completions);
    throw;
  }
}

void GlooCommunicator::receive(const Call& call) {
  const std::uint64_t slot = kPairSlot | received_[static_cast<std::size_t>(call.root)]++;
  tag_ = tag_of(call, slot & ~kPairSlot);
  CallTag theirs;
  Completions completions;
  try {
    links_.receive(call.root, slot, &theirs, sizeof theirs, completions);
    wait([&] { return completions.receives == 1; });
    compare(theirs, call.root);
    links_.receive(call.root, slot, call.output, call.bytes(), completions);
    wait([&] { return completions.receives == 2; });
  } catch (...) {
    links_.withdraw(completions);
    throw;
  }
}

}  // namespace

std::unique_ptr<Communicator> make_gloo_communicator(Place place, Store& store, const GlooOptions& options) {
  std::vector<SealedSocket> mesh =
      connect_mesh(place, store, {options.name, options.address, options.access, options.meet_within});
  return std::make_unique<GlooCommunicator>(std::move(place), std::move(mesh), options);
}

}  // namespace fleetrun::collective
