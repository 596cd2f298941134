// The part of NCCL that collective/nccl uses, between threads of one process. What ranks disagree on never
// ends, as with the real one, until the communicator is aborted.
#include "tests/support/fake_gpu/fake_nccl_comm.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <type_traits>

using namespace fleetrun::tests;

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<FakeWorld>> worlds;  // by unique id
  std::set<std::shared_ptr<FakeComm>> comms;
  std::uint64_t ids = 0;
};

Registry& registry() {
  static Registry all;
  return all;
}

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 4;
  }
}

/// Sums wrap, as on a GPU: a barrier adds up what happens to be in its scratch memory.
template <class Value>
Value sum_of(Value a, Value b) {
  if constexpr (std::is_integral_v<Value>)
    return static_cast<Value>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return static_cast<Value>(a + b);
}

template <class Value>
void reduce_as(const FakeRendezvous& rendezvous, Value* to, std::size_t from, std::size_t count,
               ncclRedOp_t operation) {
  for (std::size_t i = 0; i < count; ++i) {
    bool is_first = true;
    Value value{};
    for (const auto& [rank, part] : rendezvous.ranks) {
      const Value next = static_cast<const Value*>(part.input)[from + i];
      if (is_first)
        value = next;
      else if (operation == ncclProd)
        value = static_cast<Value>(value * next);
      else if (operation == ncclMin)
        value = std::min(value, next);
      else if (operation == ncclMax)
        value = std::max(value, next);
      else
        value = sum_of(value, next);
      is_first = false;
    }
    if (operation == ncclAvg) value = static_cast<Value>(value / static_cast<Value>(rendezvous.ranks.size()));
    to[i] = value;
  }
}

/// Elements [from, from + count) of all inputs.
std::vector<char> reduced(const FakeRendezvous& rendezvous, std::size_t from, std::size_t count) {
  const FakeOperation& any = rendezvous.ranks.begin()->second;
  std::vector<char> result(count * bytes_of(any.type));
  const auto as = [&]<class Value>(Value) {
    reduce_as(rendezvous, reinterpret_cast<Value*>(result.data()), from, count, any.operation);
  };
  switch (any.type) {
    case ncclInt8:
      as(std::int8_t{});
      break;
    case ncclUint8:
      as(std::uint8_t{});
      break;
    case ncclInt32:
      as(std::int32_t{});
      break;
    case ncclInt64:
      as(std::int64_t{});
      break;
    case ncclFloat32:
      as(float{});
      break;
    case ncclFloat64:
      as(double{});
      break;
    default:
      break;
  }
  return result;
}

void perform(FakeRendezvous& rendezvous) {
  const FakeOperation& any = rendezvous.ranks.begin()->second;
  const std::size_t bytes = any.count * bytes_of(any.type);
  std::map<int, std::vector<char>> outputs;  // made before any is written: buffers may be the same in and out
  std::vector<char> all;
  if (any.kind == FakeKind::all_gather) {
    for (const auto& [rank, part] : rendezvous.ranks) {
      const char* begin = static_cast<const char*>(part.input);
      all.insert(all.end(), begin, begin + bytes);
    }
  }
  for (const auto& [rank, part] : rendezvous.ranks) {
    auto& output = outputs[rank];
    const char* root = static_cast<const char*>(rendezvous.ranks.at(any.root).input);
    switch (any.kind) {
      case FakeKind::broadcast:
        output.assign(root, root + bytes);
        break;
      case FakeKind::all_gather:
        output = all;
        break;
      case FakeKind::reduce_scatter:
        output = reduced(rendezvous, static_cast<std::size_t>(rank) * any.count, any.count);
        break;
      default:
        output = reduced(rendezvous, 0, any.count);
    }
  }
  for (const auto& [rank, part] : rendezvous.ranks) {
    if (any.kind == FakeKind::reduce && rank != any.root) continue;
    if (!outputs[rank].empty()) std::memcpy(part.output, outputs[rank].data(), outputs[rank].size());
  }
}

bool is_same(const FakeOperation& a, const FakeOperation& b) {
  return a.kind == b.kind && a.count == b.count && a.type == b.type && a.operation == b.operation &&
         a.root == b.root;
}

/// On the stream's thread: returns when all ranks have come, or the communicator was stopped.
void meet(const std::shared_ptr<FakeComm>& comm, const FakeOperation& operation) {
  FakeWorld& world = *comm->world;
  std::unique_lock lock(world.mutex);
  const std::uint64_t number = comm->collectives++;
  FakeRendezvous& rendezvous = world.rendezvous[number];
  rendezvous.ranks[comm->rank] = operation;
  const bool agreed = std::all_of(rendezvous.ranks.begin(), rendezvous.ranks.end(),
                                  [&](const auto& part) { return is_same(part.second, operation); });
  if (agreed && static_cast<int>(rendezvous.ranks.size()) == world.size) {
    perform(rendezvous);
    rendezvous.is_done = true;
    world.changed.notify_all();
  }
  world.changed.wait(lock, [&] { return rendezvous.is_done || comm->is_stopped; });
  if (rendezvous.is_done && ++rendezvous.left == world.size) world.rendezvous.erase(number);
}

void pass_messages(const std::shared_ptr<FakeComm>& comm, const std::vector<FakeOperation>& operations) {
  FakeWorld& world = *comm->world;
  std::unique_lock lock(world.mutex);
  std::vector<std::shared_ptr<FakeMessage>> sent;
  for (const FakeOperation& operation : operations) {
    if (operation.kind != FakeKind::send) continue;
    sent.push_back(
        std::make_shared<FakeMessage>(operation.input, operation.count * bytes_of(operation.type)));
    world.messages[{comm->rank, operation.root}].push_back(sent.back());
  }
  world.changed.notify_all();
  for (const FakeOperation& operation : operations) {
    if (operation.kind != FakeKind::receive) continue;
    auto& messages = world.messages[{operation.root, comm->rank}];
    world.changed.wait(lock, [&] { return !messages.empty() || comm->is_stopped; });
    if (messages.empty()) return;
    const auto message = messages.front();
    messages.pop_front();
    if (message->bytes > 0) std::memcpy(operation.output, message->data, message->bytes);
    message->is_taken = true;
    world.changed.notify_all();
  }
  world.changed.wait(lock, [&] {
    return comm->is_stopped ||
           std::all_of(sent.begin(), sent.end(), [](const auto& m) { return m->is_taken; });
  });
}

bool is_between_two(const FakeOperation& operation) {
  return operation.kind == FakeKind::send || operation.kind == FakeKind::receive;
}

struct Group {
  int depth = 0;
  std::vector<std::pair<std::shared_ptr<FakeComm>, cudaStream_t>> order;
  std::map<FakeComm*, std::vector<FakeOperation>> operations;
};
thread_local Group group;

void launch(const std::shared_ptr<FakeComm>& comm, cudaStream_t stream,
            std::vector<FakeOperation> operations) {
  const auto run = new std::function<void()>([comm, operations = std::move(operations)] {
    std::vector<FakeOperation> between_two;
    for (const FakeOperation& operation : operations) {
      if (is_between_two(operation))
        between_two.push_back(operation);
      else
        meet(comm, operation);
    }
    pass_messages(comm, between_two);
  });
  cudaLaunchHostFunc(
      stream,
      [](void* data) {
        const std::unique_ptr<std::function<void()>> function(static_cast<std::function<void()>*>(data));
        (*function)();
      },
      run);
}

ncclResult_t end_group() {
  ++fake_nccl().counts.groups;
  for (const auto& [comm, stream] : group.order) {
    std::lock_guard lock(comm->world->mutex);
    comm->started.push_back([comm = comm, stream = stream, operations = group.operations[comm.get()]] {
      launch(comm, stream, operations);
    });
    comm->questions = 0;
  }
  group = {};
  return ncclInProgress;
}

ncclResult_t add(ncclComm_t handle, cudaStream_t stream, const FakeOperation& operation) {
  const auto comm = handle->state;
  int device = -1;
  cudaGetDevice(&device);
  if (device != comm->device || operation.root < 0 || operation.root >= comm->world->size)
    return ncclInvalidUsage;
  {
    std::lock_guard lock(comm->world->mutex);
    if (comm->is_stopped || comm->world->joined < comm->world->size) return ncclInvalidUsage;
    if (!comm->started.empty()) return ncclInvalidUsage;  // the one before is not on its stream yet
  }
  FakeNcclCounts& counts = fake_nccl().counts;
  if (is_between_two(operation))
    ++(operation.kind == FakeKind::send ? counts.sends : counts.receives);
  else
    ++counts.collectives;
  if (!group.operations.contains(comm.get())) group.order.emplace_back(comm, stream);
  group.operations[comm.get()].push_back(operation);
  return group.depth > 0 ? ncclSuccess : end_group();
}

/// The handle's end.
void forget(ncclComm_t comm) {
  std::lock_guard lock(registry().mutex);
  registry().comms.erase(comm->state);
  delete comm;
}

}  // namespace

namespace fleetrun::tests {

FakeNccl& fake_nccl() {
  static FakeNccl settings;
  return settings;
}

void fake_nccl_fails(int rank, ncclResult_t result) {
  std::unique_lock lock(registry().mutex);
  const auto comms = registry().comms;
  lock.unlock();
  for (const auto& comm : comms) {
    std::lock_guard inner(comm->world->mutex);
    if (comm->rank == rank) comm->failure = result;
  }
}

ncclComm_t fake_comm(std::shared_ptr<FakeWorld> world, int rank, int device) {
  const auto state = std::make_shared<FakeComm>();
  state->world = std::move(world);
  state->rank = rank;
  state->device = device;
  {
    std::lock_guard lock(state->world->mutex);
    ++state->world->joined;
  }
  std::lock_guard lock(registry().mutex);
  registry().comms.insert(state);
  return new ncclComm{state};
}

}  // namespace fleetrun::tests

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = fake_nccl().version;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "a failure";
}
const char* ncclGetLastError(ncclComm_t) {
  return "the fake one";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::lock_guard lock(registry().mutex);
  std::memset(id, 0, sizeof *id);
  std::strcpy(id->internal + 1,
              ("id " + std::to_string(++registry().ids)).c_str());  // a zero in it: ids are not text
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (!config || config->blocking != 0) return ncclInvalidArgument;
  std::shared_ptr<FakeWorld> world;
  {
    std::lock_guard lock(registry().mutex);
    auto& known = registry().worlds[std::string(id.internal, sizeof id.internal)];
    world = known.lock();
    if (!world) known = world = std::make_shared<FakeWorld>(size);
  }
  int device = 0;
  cudaGetDevice(&device);
  *comm = fake_comm(world, rank, device);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  const auto state = comm->state;
  std::lock_guard lock(state->world->mutex);
  *result = state->failure;
  if (state->failure != ncclSuccess) return ncclSuccess;
  *result = ncclInProgress;
  if (state->world->joined < state->world->size) return ncclSuccess;
  if (!state->started.empty() && state->questions++ == 0) return ncclSuccess;
  for (const auto& start : state->started) start();
  state->started.clear();
  *result = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) {
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  ++fake_nccl().counts.destroyed;
  forget(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    const auto state = comm->state;
    std::lock_guard lock(state->world->mutex);
    state->is_stopped = true;
    ++fake_nccl().counts.aborted;
    state->world->changed.notify_all();
  }
  forget(comm);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  return --group.depth > 0 || group.order.empty() ? ncclSuccess : end_group();
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {FakeKind::all_reduce, in, out, count, type, op, 0});
}
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {FakeKind::broadcast, in, out, count, type, ncclSum, root});
}
ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {FakeKind::reduce, in, out, count, type, op, root});
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return add(comm, stream, {FakeKind::all_gather, in, out, count, type, ncclSum, 0});
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {FakeKind::reduce_scatter, in, out, count, type, op, 0});
}
ncclResult_t ncclSend(const void* in, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, {FakeKind::send, in, nullptr, count, type, ncclSum, peer});
}
ncclResult_t ncclRecv(void* out, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, {FakeKind::receive, nullptr, out, count, type, ncclSum, peer});
}

}  // extern "C"
