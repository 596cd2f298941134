#include "runtime/python/collective_group.h"

#include <string>

#include "collective/nccl/gpu.h"
#include "runtime/base/error.h"

namespace fleetrun::python {

using collective::Communicator;

bool Group::has(int device) {
  const std::lock_guard lock(mutex_);
  return gpus_.contains(device);
}

Communicator& Group::of(std::optional<int> device) {
  if (!device) return *communicator;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = gpus_.find(*device); found != gpus_.end()) return *found->second;
  }
  auto made = make(*device);
  const std::lock_guard lock(mutex_);
  return *gpus_.emplace(*device, std::move(made)).first->second;
}

std::unique_ptr<Communicator> Group::make(int device) {
  const std::string& name = communicator->place().group;
  return while_doing("making the communicator between the GPUs of group " + name, [&] {
    // A rank whose arrays are in the host's memory makes another call here, and all of them learn it at once.
    collective::barrier(*communicator);
    // Ranks have different devices, and use as many of them.
    return world->make_communicator(name + "/GPU " + std::to_string(gpus_.size()), ranks_, options_,
                                    [device](const collective::GroupRendezvous& rendezvous) {
                                      collective::GpuOptions options;
                                      options.device = device;
                                      options.groups = rendezvous.inner_groups;
                                      options.meet_within = rendezvous.meet_within;
                                      options.call_within = rendezvous.call_within;
                                      return collective::make_gpu_communicator(
                                          rendezvous.place, rendezvous.store, rendezvous.prefix, options);
                                    });
  });
}

void Group::abort(const Error& why) noexcept {
  communicator->abort(why);
  const std::lock_guard lock(mutex_);
  for (const auto& [device, gpu] : gpus_) gpu->abort(why);
}

}  // namespace fleetrun::python
