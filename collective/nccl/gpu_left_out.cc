// Of a fleetrun that was built where nccl.h was not found; collective/nccl/gpu.cc is the other one.
#include "collective/nccl/gpu.h"

namespace fleetrun::collective {

bool has_gpu_communicators() noexcept {
  return false;
}

std::unique_ptr<Communicator> make_gpu_communicator(const Place& place, Store&, const std::string&,
                                                    const GpuOptions&) {
  throw Error(ErrorKind::host,
              "group " + place.group + " is to be of GPUs, and this fleetrun was built without NCCL",
              "build it again after scripts/setup-cuda, or train on CPUs");
}

}  // namespace fleetrun::collective
