// Several communicators of the same ranks, used in turn, so that several calls are under way at once: what
// `nccl_comm_num` asks for. Call i goes to communicator i mod n, on every rank alike.
//
// Calls on one member run in their order; calls on different ones run beside each other, so that two of them
// must not use the same buffer unless the first has been waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collective/base/communicator.h"

namespace fleetrun::collective {

class CommunicatorRing : public Communicator {
 public:
  /// Throws: Error(config) for none, and for members of different places.
  explicit CommunicatorRing(std::vector<std::unique_ptr<Communicator>> members);

  const Place& place() const noexcept override { return members_.front()->place(); }
  void run(const Call& call) override { next().run(call); }
  std::unique_ptr<Work> start(const Call& call) override { return next().start(call); }
  /// All members.
  void abort(const Error& why) noexcept override;

 private:
  Communicator& next() noexcept { return *members_[calls_++ % members_.size()]; }

  std::vector<std::unique_ptr<Communicator>> members_;
  std::uint64_t calls_ = 0;
};

}  // namespace fleetrun::collective
