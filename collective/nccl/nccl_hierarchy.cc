#include "collective/nccl/nccl_hierarchy.h"

#include <algorithm>

#include "collective/cpu/flatten.h"

namespace fleetrun::collective {
namespace {

/// Calls of which each comes after the one before on their stream.
class WorkInSteps : public Work {
 public:
  explicit WorkInSteps(std::vector<std::unique_ptr<Work>> steps) : steps_(std::move(steps)) {}
  bool has_ended() const noexcept override {
    return std::all_of(steps_.begin(), steps_.end(), [](const auto& step) { return step->has_ended(); });
  }
  void wait() override {
    for (const auto& step : steps_) step->wait();
  }

 private:
  std::vector<std::unique_ptr<Work>> steps_;
};

struct Position {
  std::size_t group = 0;
  int index = 0;
};

Position position_of(const Place& place, const std::vector<std::vector<int>>& groups) {
  std::vector<int> all;
  Position found;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (std::size_t i = 0; i < groups[group].size(); ++i) {
      all.push_back(groups[group][i]);
      if (groups[group][i] == place.rank) found = {group, static_cast<int>(i)};
    }
  }
  std::sort(all.begin(), all.end());
  bool is_whole = all.size() == static_cast<std::size_t>(place.size);
  for (std::size_t rank = 0; is_whole && rank < all.size(); ++rank)
    is_whole = all[rank] == static_cast<int>(rank);
  if (is_whole) return found;
  throw Error(ErrorKind::config,
              "group " + place.group + " in two levels: the inner groups have " + std::to_string(all.size()) +
                  " ranks, the group has " + std::to_string(place.size),
              "put every rank into one inner group");
}

}  // namespace

NcclHierarchy::NcclHierarchy(const GpuLibraries& libraries, const Place& place, Store& store,
                             const std::string& prefix, const NcclOptions& options,
                             const std::vector<std::vector<int>>& groups) {
  const Position own = position_of(place, groups);
  const std::string group = std::to_string(own.group);
  for (const auto& other : groups) is_even_ &= other.size() == groups.front().size();
  flat_ = std::make_unique<NcclCommunicator>(libraries, place, store, prefix + "/flat", options);
  NcclOptions shared = options;
  shared.stream = flat_->stream();
  const Place within{place.group + "'s inner group " + group, own.index,
                     static_cast<int>(groups[own.group].size())};
  inner_ = std::make_unique<NcclCommunicator>(libraries, within, store, prefix + "/inner " + group, shared);
  if (own.index > 0) return;
  const Place among{place.group + "'s first ranks", static_cast<int>(own.group),
                    static_cast<int>(groups.size())};
  outer_ = std::make_unique<NcclCommunicator>(libraries, among, store, prefix + "/outer", shared);
}

std::unique_ptr<Work> NcclHierarchy::start(const Call& call) {
  check(call, place().rank, place().size);
  const bool is_exact = call.operation != Operation::avg || (is_even_ && is_floating(call.type));
  if (call.kind != CallKind::all_reduce || !is_exact) return flat_->start(call);
  std::vector<std::unique_ptr<Work>> steps;
  Call step = call;
  step.kind = CallKind::reduce;
  steps.push_back(inner_->start(step));
  step.input = call.output;
  if (outer_) {
    step.kind = CallKind::all_reduce;
    steps.push_back(outer_->start(step));
  }
  step.kind = CallKind::broadcast;
  steps.push_back(inner_->start(step));
  return std::make_unique<WorkInSteps>(std::move(steps));
}

void NcclHierarchy::abort(const Error& why) noexcept {
  for (NcclCommunicator* level : {flat_.get(), inner_.get(), outer_.get()})
    if (level) level->abort(why);
}

}  // namespace fleetrun::collective
