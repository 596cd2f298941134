#include "collective/nccl/gpu.h"

#include "collective/base/communicator_ring.h"
#include "collective/nccl/nccl_hierarchy.h"

namespace fleetrun::collective {
namespace {

/// A communicator with the libraries that it calls.
class GpuCommunicator : public Communicator {
 public:
  GpuCommunicator(std::unique_ptr<GpuLibraries> libraries, std::unique_ptr<Communicator> communicator)
      : libraries_(std::move(libraries)), communicator_(std::move(communicator)) {}

  const Place& place() const noexcept override { return communicator_->place(); }
  void run(const Call& call) override { communicator_->run(call); }
  std::unique_ptr<Work> start(const Call& call) override { return communicator_->start(call); }
  void abort(const Error& why) noexcept override { communicator_->abort(why); }

 private:
  std::unique_ptr<GpuLibraries> libraries_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace

bool has_gpu_communicators() noexcept {
  return true;
}

std::unique_ptr<Communicator> make_gpu_communicator(const Place& place, Store& store,
                                                    const std::string& prefix, const GpuOptions& options) {
  if (options.communicators < 1)
    throw Error(ErrorKind::config, "a ring of " + std::to_string(options.communicators) + " communicators",
                "set nccl_comm_num to 1 or more");
  auto libraries = std::make_unique<GpuLibraries>();
  NcclOptions of_each;
  of_each.device = options.device;
  of_each.caller_stream = static_cast<cudaStream_t>(options.caller_stream);
  of_each.checks_calls = options.checks_calls;
  of_each.meet_within = options.meet_within;
  of_each.call_within = options.call_within;
  std::vector<std::unique_ptr<Communicator>> members;
  for (int i = 0; i < options.communicators; ++i) {
    const std::string name = prefix + "/" + std::to_string(i);
    if (options.groups.empty())
      members.push_back(std::make_unique<NcclCommunicator>(*libraries, place, store, name, of_each));
    else
      members.push_back(
          std::make_unique<NcclHierarchy>(*libraries, place, store, name, of_each, options.groups));
  }
  auto communicator = members.size() == 1 ? std::move(members.front())
                                          : std::make_unique<CommunicatorRing>(std::move(members));
  return std::make_unique<GpuCommunicator>(std::move(libraries), std::move(communicator));
}

}  // namespace fleetrun::collective
