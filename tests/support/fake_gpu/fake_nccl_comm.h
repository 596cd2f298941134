// A communicator of the fake NCCL, for fake_nccl.cc and fake_nccl_shrink.cc alone.
//
// It is non-blocking as the real one is: a call that was started is on its stream only when
// ncclCommGetAsyncError has said ncclSuccess, which it says at the second question; a communicator is ready
// when all ranks have asked for it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/fake_gpu/controls.h"

namespace fleetrun::tests {

enum class FakeKind { all_reduce, broadcast, reduce, all_gather, reduce_scatter, send, receive };

struct FakeOperation {
  FakeKind kind = FakeKind::all_reduce;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t operation = ncclSum;
  int root = 0;  // of send and receive: the other rank
};

/// Where the ranks come together: their n-th collectives are one, where they are the same.
struct FakeRendezvous {
  std::map<int, FakeOperation> ranks;
  int left = 0;
  bool is_done = false;
};
struct FakeMessage {
  const void* data;
  std::size_t bytes;
  bool is_taken = false;
};
struct FakeWorld {
  explicit FakeWorld(int ranks) : size(ranks) {}

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  int joined = 0;
  std::map<std::uint64_t, FakeRendezvous> rendezvous;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<FakeMessage>>> messages;  // by sender and receiver
  std::map<std::string, std::shared_ptr<FakeWorld>> shrunk;                          // by who was left out
};

struct FakeComm {
  std::shared_ptr<FakeWorld> world;
  int rank = 0, device = 0;
  std::uint64_t collectives = 0;  // on streams so far
  bool is_stopped = false;        // aborted or revoked
  ncclResult_t failure = ncclSuccess;
  std::vector<std::function<void()>> started;  // not yet on their streams
  int questions = 0;
};

/// Joins `world`: the handle.
ncclComm_t fake_comm(std::shared_ptr<FakeWorld> world, int rank, int device);

}  // namespace fleetrun::tests

struct ncclComm {
  std::shared_ptr<fleetrun::tests::FakeComm> state;  // of the handle and of what still runs on streams
};
