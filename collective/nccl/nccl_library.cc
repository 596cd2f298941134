#include "collective/nccl/nccl_library.h"

namespace fleetrun::collective {
namespace {

constexpr int kOldestCudaRuntime = 12000;
constexpr int kOldestNccl = 21800;  // before it non-blocking communicators could not be relied upon

constexpr const char* kCudaHint =
    "install the CUDA runtime 12 or 13 (NVIDIA's package, or pip install nvidia-cuda-runtime) and add its "
    "folder to "
    "LD_LIBRARY_PATH, or train on CPUs";
constexpr const char* kNcclHint =
    "install NCCL 2.18 or later (NVIDIA's package, or pip install nvidia-nccl-cu13) and add its folder to "
    "LD_LIBRARY_PATH, or train on CPUs";

SharedLibrary load_first(const std::vector<std::string>& names, const char* hint) {
  std::string why;
  for (const std::string& name : names) {
    try {
      return SharedLibrary(name.c_str(), "communication between GPUs", hint);
    } catch (const Error& error) {
      why += (why.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  throw Error(ErrorKind::host, why, hint);
}

}  // namespace

std::string nccl_version_text(int version) {
  if (version < 10000) version = version / 1000 * 10000 + version % 1000;  // as they were written before 2.9
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

CudaRuntime::CudaRuntime(const std::vector<std::string>& names) : library_(load_first(names, kCudaHint)) {
  int runtime = 0, driver = 0;
  check(cudaRuntimeGetVersion(&runtime), "asking the CUDA runtime for its version");
  if (runtime < kOldestCudaRuntime) {
    throw Error(ErrorKind::host,
                "communication between GPUs needs the CUDA runtime 12 or 13; this one is " +
                    cuda_version_text(runtime),
                kCudaHint);
  }
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    throw Error(ErrorKind::host, "the CUDA runtime is here, but no driver of NVIDIA's (libcuda.so.1)",
                "run this on a machine with a GPU and its driver, or train on CPUs");
  }
  if (driver / 1000 < runtime / 1000) {
    throw Error(ErrorKind::host,
                "the CUDA runtime is " + cuda_version_text(runtime) + ", the driver is of CUDA " +
                    cuda_version_text(driver),
                "install a newer driver, or the CUDA runtime " + std::to_string(driver / 1000));
  }
  if (cudaGetDeviceCount(&devices_) != cudaSuccess || devices_ == 0) {
    throw Error(ErrorKind::host, "NVIDIA's driver is here, but no GPU can be seen",
                "check CUDA_VISIBLE_DEVICES and nvidia-smi, or train on CPUs");
  }
}

void CudaRuntime::check(cudaError_t result, const std::string& what) const {
  if (result == cudaSuccess) return;
  throw Error(ErrorKind::host, what + ": CUDA says: " + cudaGetErrorString(result));
}

Nccl::Nccl(const std::vector<std::string>& names) : library_(load_first(names, kNcclHint)) {
  check(ncclGetVersion(&version_), "asking NCCL for its version");
  if (version_ < kOldestNccl) {
    throw Error(ErrorKind::host,
                "communication between GPUs needs NCCL " + nccl_version_text(kOldestNccl) +
                    " or later; this one is " + nccl_version_text(version_),
                kNcclHint);
  }
}

void Nccl::check(ncclResult_t result, const std::string& what, ncclComm_t communicator) const {
  if (result != ncclSuccess && result != ncclInProgress) throw error(result, what, communicator);
}

Error Nccl::error(ncclResult_t result, const std::string& what, ncclComm_t communicator) const {
  std::string text = what + ": NCCL says: " + ncclGetErrorString(result);
  const char* last = ncclGetLastError(communicator);
  if (last && *last) text += std::string(" (") + last + ")";
  return Error(ErrorKind::network, text, "NCCL_DEBUG=INFO in the trainers' environment shows what NCCL did");
}

}  // namespace fleetrun::collective
