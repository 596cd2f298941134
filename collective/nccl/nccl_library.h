// The libraries of a machine with GPUs: the CUDA runtime and NCCL, loaded when a communicator is made and not
// before, so that one program serves machines that have neither.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>
#include <vector>

#include "runtime/base/shared_library.h"

namespace fleetrun::collective {

/// A function of a library under its own name: a call reads as in the library's manual.
/// `optional` ones are tested first.
template <class Type>
class LibraryFunction {
 public:
  LibraryFunction(const SharedLibrary& library, const char* name) : pointer_(library.find<Type>(name)) {}
  LibraryFunction(const SharedLibrary* optional, const char* name)
      : pointer_(optional->find_optional<Type>(name)) {}
  template <class... Arguments>
  auto operator()(Arguments... arguments) const {
    return pointer_(arguments...);
  }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }

 private:
  Type* pointer_;
};

/// Names or paths, of which the first that can be loaded is taken.
struct GpuLibraryNames {
  std::vector<std::string> cuda_runtime = {"libcudart.so.13", "libcudart.so.12"};
  std::vector<std::string> nccl = {"libnccl.so.2"};
};

class CudaRuntime {
  SharedLibrary library_;
  template <class Type>
  using Function = LibraryFunction<Type>;
  using Allocate = cudaError_t(void**, std::size_t);
  using AllocateHost = cudaError_t(void**, std::size_t, unsigned);
  using CreateEvent = cudaError_t(cudaEvent_t*, unsigned);

 public:
  /// Throws: Error(host) where there is no such library, no driver that it can work with, or no GPU.
  explicit CudaRuntime(const std::vector<std::string>& names);

  Function<decltype(::cudaRuntimeGetVersion)> cudaRuntimeGetVersion{library_, "cudaRuntimeGetVersion"};
  Function<decltype(::cudaDriverGetVersion)> cudaDriverGetVersion{library_, "cudaDriverGetVersion"};
  Function<decltype(::cudaGetErrorString)> cudaGetErrorString{library_, "cudaGetErrorString"};
  Function<decltype(::cudaGetDeviceCount)> cudaGetDeviceCount{library_, "cudaGetDeviceCount"};
  Function<decltype(::cudaGetDevice)> cudaGetDevice{library_, "cudaGetDevice"};
  Function<decltype(::cudaSetDevice)> cudaSetDevice{library_, "cudaSetDevice"};
  Function<decltype(::cudaStreamCreateWithPriority)> cudaStreamCreateWithPriority{
      library_, "cudaStreamCreateWithPriority"};
  Function<decltype(::cudaStreamDestroy)> cudaStreamDestroy{library_, "cudaStreamDestroy"};
  Function<decltype(::cudaStreamWaitEvent)> cudaStreamWaitEvent{library_, "cudaStreamWaitEvent"};
  Function<decltype(::cudaStreamSynchronize)> cudaStreamSynchronize{library_, "cudaStreamSynchronize"};
  Function<CreateEvent> cudaEventCreateWithFlags{library_, "cudaEventCreateWithFlags"};
  Function<cudaError_t(cudaEvent_t, cudaStream_t)> cudaEventRecord{library_, "cudaEventRecord"};
  Function<decltype(::cudaEventQuery)> cudaEventQuery{library_, "cudaEventQuery"};
  Function<decltype(::cudaEventSynchronize)> cudaEventSynchronize{library_, "cudaEventSynchronize"};
  Function<decltype(::cudaEventDestroy)> cudaEventDestroy{library_, "cudaEventDestroy"};
  Function<Allocate> cudaMalloc{library_, "cudaMalloc"};
  Function<decltype(::cudaFree)> cudaFree{library_, "cudaFree"};
  Function<AllocateHost> cudaHostAlloc{library_, "cudaHostAlloc"};
  Function<decltype(::cudaFreeHost)> cudaFreeHost{library_, "cudaFreeHost"};
  Function<decltype(::cudaMemcpyAsync)> cudaMemcpyAsync{library_, "cudaMemcpyAsync"};
  Function<decltype(::cudaMemsetAsync)> cudaMemsetAsync{library_, "cudaMemsetAsync"};

  int devices() const noexcept { return devices_; }
  /// Throws: Error(host) "WHAT: CUDA's own words" unless `result` is cudaSuccess.
  void check(cudaError_t result, const std::string& what) const;

 private:
  int devices_ = 0;
};

class Nccl {
  SharedLibrary library_;
  template <class Type>
  using Function = LibraryFunction<Type>;

 public:
  /// Throws: Error(host) where there is no such library or one from before 2.18.
  explicit Nccl(const std::vector<std::string>& names);

  Function<decltype(::ncclGetVersion)> ncclGetVersion{library_, "ncclGetVersion"};
  Function<decltype(::ncclGetErrorString)> ncclGetErrorString{library_, "ncclGetErrorString"};
  Function<decltype(::ncclGetLastError)> ncclGetLastError{library_, "ncclGetLastError"};
  Function<decltype(::ncclGetUniqueId)> ncclGetUniqueId{library_, "ncclGetUniqueId"};
  Function<decltype(::ncclCommInitRankConfig)> ncclCommInitRankConfig{library_, "ncclCommInitRankConfig"};
  Function<decltype(::ncclCommGetAsyncError)> ncclCommGetAsyncError{library_, "ncclCommGetAsyncError"};
  Function<decltype(::ncclCommFinalize)> ncclCommFinalize{library_, "ncclCommFinalize"};
  Function<decltype(::ncclCommDestroy)> ncclCommDestroy{library_, "ncclCommDestroy"};
  Function<decltype(::ncclCommAbort)> ncclCommAbort{library_, "ncclCommAbort"};
  Function<decltype(::ncclGroupStart)> ncclGroupStart{library_, "ncclGroupStart"};
  Function<decltype(::ncclGroupEnd)> ncclGroupEnd{library_, "ncclGroupEnd"};
  Function<decltype(::ncclAllReduce)> ncclAllReduce{library_, "ncclAllReduce"};
  Function<decltype(::ncclBroadcast)> ncclBroadcast{library_, "ncclBroadcast"};
  Function<decltype(::ncclReduce)> ncclReduce{library_, "ncclReduce"};
  Function<decltype(::ncclAllGather)> ncclAllGather{library_, "ncclAllGather"};
  Function<decltype(::ncclReduceScatter)> ncclReduceScatter{library_, "ncclReduceScatter"};
  Function<decltype(::ncclSend)> ncclSend{library_, "ncclSend"};
  Function<decltype(::ncclRecv)> ncclRecv{library_, "ncclRecv"};
  // Not in every version; their types are written out because older headers lack them, too.
  using Shrink = ncclResult_t(ncclComm_t, int*, int, ncclComm_t*, ncclConfig_t*, int);
  Function<Shrink> ncclCommShrink{&library_, "ncclCommShrink"};                         // 2.27
  Function<ncclResult_t(ncclComm_t, int)> ncclCommRevoke{&library_, "ncclCommRevoke"};  // 2.28

  int version() const noexcept { return version_; }
  /// Throws: Error(network) "WHAT: NCCL's own words" unless `result` is ncclSuccess or ncclInProgress.
  void check(ncclResult_t result, const std::string& what, ncclComm_t communicator = nullptr) const;
  Error error(ncclResult_t result, const std::string& what, ncclComm_t communicator = nullptr) const;

 private:
  int version_ = 0;
};

/// Both, loaded once and shared by reference by all communicators of a process.
struct GpuLibraries {
  GpuLibraries() : GpuLibraries(GpuLibraryNames{}) {}
  explicit GpuLibraries(const GpuLibraryNames& names) : cuda(names.cuda_runtime), nccl(names.nccl) {}

  CudaRuntime cuda;
  Nccl nccl;
};

/// "2.28.9" of 22809, "13.0" of 13000.
std::string nccl_version_text(int version);
std::string cuda_version_text(int version);

}  // namespace fleetrun::collective
