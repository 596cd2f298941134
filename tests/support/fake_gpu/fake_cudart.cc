// The part of the CUDA runtime that collective/nccl uses, on host memory. A stream's thread runs its
// functions in order; an event is finished when its stream has come to where it was recorded.
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/support/fake_gpu/controls.h"

namespace {

struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0, finished = 0;

  void wait_for(std::uint64_t number) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return finished >= number; });
  }
};

struct Memory {
  std::mutex mutex;
  std::map<void*, std::size_t> blocks;
  long held = 0;
};

Memory& memory() {
  static Memory all;
  return all;
}

void count(long amount) {
  std::lock_guard lock(memory().mutex);
  memory().held += amount;
}

thread_local int current_device = 0;

cudaError_t allocate(void** pointer, std::size_t bytes) {
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
  if (!*pointer) return cudaErrorMemoryAllocation;
  std::lock_guard lock(memory().mutex);
  memory().blocks[*pointer] = bytes;
  memory().held += static_cast<long>(bytes);
  return cudaSuccess;
}

cudaError_t give_back(void* pointer) {
  if (!pointer) return cudaSuccess;
  std::lock_guard lock(memory().mutex);
  const auto found = memory().blocks.find(pointer);
  if (found == memory().blocks.end()) return cudaErrorInvalidValue;
  memory().held -= static_cast<long>(found->second);
  memory().blocks.erase(found);
  std::free(pointer);
  return cudaSuccess;
}

}  // namespace

struct CUevent_st {
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

struct CUstream_st {
  CUstream_st() : worker([this] { run(); }) {}
  ~CUstream_st() {
    add([this] { closing = true; });
    worker.join();
  }

  void add(std::function<void()> task) {
    std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
    changed.notify_all();
  }

  void run() {
    while (!closing) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !tasks.empty(); });
      const auto task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool closing = false;  // the worker's own
  std::thread worker;    // last: it uses the others
};

namespace {

CUstream_st& stream_of(cudaStream_t stream) {
  static auto& by_default = *new CUstream_st;  // stays until the process ends, as the real one
  return stream ? *stream : by_default;
}

}  // namespace

namespace fleetrun::tests {

FakeCuda& fake_cuda() {
  static FakeCuda settings;
  return settings;
}

long fake_cuda_held() {
  std::lock_guard lock(memory().mutex);
  return memory().held;
}

}  // namespace fleetrun::tests

using fleetrun::tests::fake_cuda;

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = fake_cuda().runtime_version;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = fake_cuda().driver_version;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess              ? "no error"
         : error == cudaErrorInvalidDevice ? "invalid device ordinal"
                                           : "an error";
}
cudaError_t cudaGetDeviceCount(int* devices) {
  *devices = fake_cuda().devices;
  return *devices > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= fake_cuda().devices) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = new CUstream_st;
  count(1);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  count(-1);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const auto state = event->state;
  std::lock_guard lock(state->mutex);
  stream_of(stream).add([state, number = state->recorded] { state->wait_for(number); });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  stream_of(stream).add([function, data] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  count(1);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto state = event->state;
  std::lock_guard lock(state->mutex);
  stream_of(stream).add([state, number = ++state->recorded] {
    std::lock_guard inner(state->mutex);
    state->finished = std::max(state->finished, number);
    state->changed.notify_all();
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  std::lock_guard lock(event->state->mutex);
  return event->state->finished == event->state->recorded ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  std::unique_lock lock(event->state->mutex);
  const std::uint64_t number = event->state->recorded;
  lock.unlock();
  event->state->wait_for(number);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  count(-1);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  CUevent_st here;
  cudaEventRecord(&here, stream);
  return cudaEventSynchronize(&here);
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return allocate(pointer, bytes);
}
cudaError_t cudaFree(void* pointer) {
  return give_back(pointer);
}
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return allocate(pointer, bytes);
}
cudaError_t cudaFreeHost(void* pointer) {
  return give_back(pointer);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  stream_of(stream).add([=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  stream_of(stream).add([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

}  // extern "C"
