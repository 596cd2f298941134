#include "collective/nccl/nccl_library.h"

#include <doctest/doctest.h>

#include "tests/support/fake_gpu/gpu_ranks.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace fleetrun::tests;

namespace {

/// What loading says where it is refused.
Error refusal(const GpuLibraryNames& names) {
  return error_of([&] { const GpuLibraries libraries(names); });
}

struct Restored {
  FakeCuda cuda = fake_cuda();
  int nccl_version = fake_nccl().version;
  ~Restored() {
    fake_cuda() = cuda;
    fake_nccl().version = nccl_version;
  }
};

}  // namespace

TEST_CASE("the libraries are loaded, with what not every version has") {
  const GpuLibraries libraries(fake_gpu_names());
  CHECK(libraries.cuda.devices() == 8);
  CHECK(libraries.nccl.version() == 22809);
  CHECK(bool(libraries.nccl.ncclCommShrink));
  CHECK(bool(libraries.nccl.ncclCommRevoke));
  const GpuLibraries older(fake_gpu_names(FAKE_NCCL_OLDER));
  CHECK_FALSE(bool(older.nccl.ncclCommShrink));
  CHECK_FALSE(bool(older.nccl.ncclCommRevoke));
}

TEST_CASE("of several names the first that can be loaded is taken") {
  const GpuLibraries libraries(
      {.cuda_runtime = {"libno-such-cudart.so", FAKE_CUDART}, .nccl = {"libno-such-nccl.so", FAKE_NCCL}});
  CHECK(libraries.cuda.devices() == 8);
}

TEST_CASE("a library that is missing is named, with what to do") {
  const Error cuda =
      refusal({.cuda_runtime = {"libno-such-cudart.so.1", "libno-such-cudart.so.2"}, .nccl = {FAKE_NCCL}});
  CHECK(cuda.kind() == ErrorKind::host);
  CHECK(contains(cuda.what(), "communication between GPUs needs libno-such-cudart.so.1: "));
  CHECK(contains(cuda.what(), "communication between GPUs needs libno-such-cudart.so.2: "));
  CHECK(contains(cuda.hint(), "install the CUDA runtime 12 or 13"));
  const Error nccl = refusal({.cuda_runtime = {FAKE_CUDART}, .nccl = {"libno-such-nccl.so"}});
  CHECK(nccl.kind() == ErrorKind::host);
  CHECK(contains(nccl.what(), "communication between GPUs needs libno-such-nccl.so: "));
  CHECK(contains(nccl.hint(), "install NCCL 2.18 or later"));
}

TEST_CASE("a library that is another one is refused by the function that it lacks") {
  const Error wrong = refusal({.cuda_runtime = {FAKE_CUDART}, .nccl = {FAKE_CUDART}});
  CHECK(wrong.kind() == ErrorKind::host);
  CHECK(contains(wrong.what(), "libfake_cudart.so has no nccl"));
}

TEST_CASE("versions that do not go together are named, both of them") {
  const Restored restored;
  fake_nccl().version = 21705;
  const Error nccl = refusal(fake_gpu_names());
  CHECK(std::string(nccl.what()) ==
        "communication between GPUs needs NCCL 2.18.0 or later; this one is 2.17.5");
  CHECK(contains(nccl.hint(), "install NCCL 2.18 or later"));
  fake_cuda().driver_version = 12040;
  const Error driver = refusal(fake_gpu_names());
  CHECK(std::string(driver.what()) == "the CUDA runtime is 13.0, the driver is of CUDA 12.4");
  CHECK(driver.hint() == "install a newer driver, or the CUDA runtime 12");
  fake_cuda().runtime_version = 11080;
  CHECK(contains(refusal(fake_gpu_names()).what(), "needs the CUDA runtime 12 or 13; this one is 11.8"));
}

TEST_CASE("no driver and no GPU are told apart") {
  const Restored restored;
  fake_cuda().devices = 0;
  const Error no_gpu = refusal(fake_gpu_names());
  CHECK(std::string(no_gpu.what()) == "NVIDIA's driver is here, but no GPU can be seen");
  CHECK(contains(no_gpu.hint(), "CUDA_VISIBLE_DEVICES"));
  fake_cuda().driver_version = 0;
  const Error no_driver = refusal(fake_gpu_names());
  CHECK(contains(no_driver.what(), "no driver of NVIDIA's (libcuda.so.1)"));
  CHECK(contains(no_driver.hint(), "train on CPUs"));
}

TEST_CASE("versions are written as their makers write them") {
  CHECK(nccl_version_text(22809) == "2.28.9");
  CHECK(nccl_version_text(2804) == "2.8.4");
  CHECK(cuda_version_text(12090) == "12.9");
}
