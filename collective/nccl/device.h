// What is made on a GPU and given back: streams, events, memory. For collective/nccl alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <utility>

#include "collective/nccl/nccl_library.h"

namespace fleetrun::collective {

/// Makes `device` the calling thread's, and puts back what was.
class CurrentDevice {
 public:
  CurrentDevice(const CudaRuntime& cuda, int device) : cuda_(cuda) {
    cuda_.check(cuda_.cudaGetDevice(&before_), "asking for the thread's device");
    if (before_ == device) return;
    cuda_.check(cuda_.cudaSetDevice(device), "choosing device " + std::to_string(device));
    changed_ = true;
  }
  ~CurrentDevice() {
    if (changed_) cuda_.cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  const CudaRuntime& cuda_;
  int before_ = 0;
  bool changed_ = false;
};

/// A stream of the calling thread's device. It does not wait for the legacy default stream.
class Stream {
 public:
  explicit Stream(const CudaRuntime& cuda) : cuda_(cuda) {
    cuda_.check(cuda_.cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0), "making a stream");
  }
  ~Stream() { cuda_.cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t value() const noexcept { return stream_; }

 private:
  const CudaRuntime& cuda_;
  cudaStream_t stream_ = nullptr;
};

/// A point in a stream. Waiting for it sleeps.
class Event {
 public:
  explicit Event(const CudaRuntime& cuda) : cuda_(cuda) {
    cuda_.check(cuda_.cudaEventCreateWithFlags(&event_, cudaEventDisableTiming | cudaEventBlockingSync),
                "making an event");
  }
  ~Event() { cuda_.cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) {
    cuda_.check(cuda_.cudaEventRecord(event_, stream), "recording an event");
  }
  /// What is added to `stream` from now on comes after this event.
  void hold(cudaStream_t stream) const {
    cuda_.check(cuda_.cudaStreamWaitEvent(stream, event_, 0), "ordering two streams");
  }
  /// Throws: Error(host) when the GPU has failed.
  bool has_passed() const {
    const cudaError_t result = cuda_.cudaEventQuery(event_);
    if (result == cudaErrorNotReady) return false;
    cuda_.check(result, "asking for an event");
    return true;
  }
  /// false also when the GPU has failed.
  bool has_surely_passed() const noexcept { return cuda_.cudaEventQuery(event_) == cudaSuccess; }
  void wait() const { cuda_.check(cuda_.cudaEventSynchronize(event_), "waiting for an event"); }

 private:
  const CudaRuntime& cuda_;
  cudaEvent_t event_ = nullptr;
};

/// Memory of the calling thread's device, or pinned memory of the host.
class GpuMemory {
 public:
  enum class Where { device, host };

  GpuMemory(const CudaRuntime& cuda, std::size_t bytes, Where where) : cuda_(cuda), where_(where) {
    cuda_.check(
        where == Where::device ? cuda_.cudaMalloc(&data_, bytes) : cuda_.cudaHostAlloc(&data_, bytes, 0u),
        "allocating " + std::to_string(bytes) + " bytes for communication");
  }
  ~GpuMemory() { where_ == Where::device ? cuda_.cudaFree(data_) : cuda_.cudaFreeHost(data_); }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }

 private:
  const CudaRuntime& cuda_;
  Where where_;
  void* data_ = nullptr;
};

}  // namespace fleetrun::collective
