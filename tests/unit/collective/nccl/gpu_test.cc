#include "collective/nccl/gpu.h"

#include <doctest/doctest.h>

#include <string>

#include "collective/store/memory_store.h"

using namespace fleetrun;
using namespace fleetrun::collective;

// Where a GPU is, this would go on to meet other ranks: it asks for a device that no machine has.
TEST_CASE(
    "GPUs that cannot be had are refused with one error that says what to do, and nobody is waited for") {
  MemoryStore store;
  GpuOptions options;
  options.device = 100000;
  try {
    make_gpu_communicator({"world", 0, 2}, store, "world", options);
    FAIL("it was made");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::host);
    CHECK_FALSE(error.hint().empty());
    const bool is_left_out = std::string(error.what()).find("was built without NCCL") != std::string::npos;
    CHECK(is_left_out == !has_gpu_communicators());
  }
}
