// An NCCL communicator in two levels: all_reduce adds up within inner groups, then among their first ranks,
// and goes back within, so that only one rank of a group uses the slower links between hosts. All other calls
// are made by all ranks alike; so are averages of integers, and of groups of different sizes, which two steps
// would get wrong. Other averages are divided in both steps.
//
// Its communicators share a stream: the three steps come after each other on the GPU,
// and no host waits in between.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collective/nccl/nccl_communicator.h"

namespace fleetrun::collective {

class NcclHierarchy : public Communicator {
 public:
  /// `groups`: every rank in one of them, as collective/base/grouping.h makes them; the same on all ranks.
  /// Throws: as NcclCommunicator; Error(config) for groups that are not the ranks.
  NcclHierarchy(const GpuLibraries& libraries, const Place& place, Store& store, const std::string& prefix,
                const NcclOptions& options, const std::vector<std::vector<int>>& groups);

  const Place& place() const noexcept override { return flat_->place(); }
  void run(const Call& call) override { start(call)->wait(); }
  std::unique_ptr<Work> start(const Call& call) override;
  void abort(const Error& why) noexcept override;

 private:
  std::unique_ptr<NcclCommunicator> flat_, inner_;
  bool is_even_ = true;                      // the groups are of one size
  std::unique_ptr<NcclCommunicator> outer_;  // of a group's first rank
};

}  // namespace fleetrun::collective
