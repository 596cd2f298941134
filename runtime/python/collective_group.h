// A communicator as Python has it: of the memory of hosts, with those of GPUs that calls on arrays there
// make, the world that it lies in, and the thread on which the interpreter's main thread waits for its calls.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "collective/base/communicator.h"
#include "collective/groups/world.h"
#include "runtime/python/interruptible_thread.h"

namespace fleetrun::python {

/// Threads: calls by one thread at a time; abort() and interrupt() by any.
class Group {
 public:
  Group(std::shared_ptr<collective::World> in_world, std::vector<int> ranks,
        collective::CommunicatorOptions options)
      : world(std::move(in_world)), ranks_(std::move(ranks)), options_(std::move(options)) {}

  /// The communicator of this GPU's memory, or of the host's. The first call with arrays on a GPU makes it,
  /// on all ranks. Throws: as collective/nccl/gpu.h says;
  /// where another rank makes another call than that, both say so.
  collective::Communicator& of(std::optional<int> device);
  bool has(int device);
  void abort(const Error& why) noexcept;
  /// For the calls to come, and those under way on a GPU. Does nothing where it was made without a limit.
  void set_call_within(std::chrono::milliseconds time) noexcept {
    if (options_.call_within) options_.call_within->set(time);
  }
  /// For Ctrl-C: the call under way fails, here and elsewhere.
  void interrupt() noexcept {
    abort(Error(ErrorKind::network, "this rank was interrupted in a collective call"));
  }

  std::shared_ptr<collective::World> world;
  std::unique_ptr<collective::Communicator> communicator;  // goes before its world
  InterruptibleThread thread;

 private:
  std::unique_ptr<collective::Communicator> make(int device);

  const std::vector<int> ranks_;
  const collective::CommunicatorOptions options_;
  std::mutex mutex_;  // of what follows
  std::map<int, std::unique_ptr<collective::Communicator>> gpus_;
};
using GroupPtr = std::shared_ptr<Group>;

}  // namespace fleetrun::python
