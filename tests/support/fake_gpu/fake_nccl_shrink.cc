// What later versions of NCCL have; the fake of an older one is linked without this file.
#include <algorithm>

#include "tests/support/fake_gpu/fake_nccl_comm.h"

using namespace fleetrun::tests;

extern "C" {

ncclResult_t ncclCommRevoke(ncclComm_t comm, int) {
  const auto state = comm->state;
  std::lock_guard lock(state->world->mutex);
  state->is_stopped = true;
  state->failure = ncclSuccess;
  state->started.clear();
  ++fake_nccl().counts.revoked;
  state->world->changed.notify_all();
  return ncclInProgress;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* made, ncclConfig_t* config,
                            int) {
  if (!config || config->blocking != 0) return ncclInvalidArgument;
  const auto state = comm->state;
  std::string key;
  int before = 0;
  for (int i = 0; i < count; ++i) {
    if (excluded[i] == state->rank) return ncclInvalidArgument;
    before += excluded[i] < state->rank;
    key += std::to_string(excluded[i]) + " ";
  }
  std::lock_guard lock(state->world->mutex);
  auto& world = state->world->shrunk[key];
  if (!world) world = std::make_shared<FakeWorld>(state->world->size - count);
  *made = nullptr;  // known when the old communicator is at rest
  state->started.push_back([=, to = world, rank = state->rank - before] {
    *made = fake_comm(to, rank, state->device);
    ++fake_nccl().counts.shrunk;
  });
  return ncclInProgress;
}

}  // extern "C"
