// Runs the tests of this program where there is a GPU, and says why not elsewhere.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "collective/nccl/nccl_library.h"

int main(int argc, char** argv) {
  try {
    const fleetrun::collective::GpuLibraries libraries;
    std::printf("%d GPUs, NCCL %s\n", libraries.cuda.devices(),
                fleetrun::collective::nccl_version_text(libraries.nccl.version()).c_str());
  } catch (const fleetrun::Error& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
