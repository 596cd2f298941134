// Real NCCL between the GPUs of this machine, or between two ranks on its only one where NCCL allows that.
#include "collective/nccl/nccl_communicator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <latch>

#include "collective/nccl/device.h"
#include "collective/nccl/nccl_hierarchy.h"
#include "collective/store/memory_store.h"
#include "tests/support/rank_threads.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace fleetrun::tests;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kCount = 100000;

/// Floats on the thread's device.
class Floats {
 public:
  Floats(const CudaRuntime& cuda, std::size_t count, float value)
      : cuda_(cuda), count_(count), memory_(cuda, count * sizeof(float), GpuMemory::Where::device) {
    const std::vector<float> host(count, value);
    copy(memory_.data(), host.data());
  }
  Buffer buffer() const { return {memory_.data(), count_, DataType::float32}; }
  ConstBuffer input() const { return {memory_.data(), count_, DataType::float32}; }
  bool are(float value) const {
    std::vector<float> host(count_);
    copy(host.data(), memory_.data());
    return host == std::vector<float>(count_, value);
  }

 private:
  void copy(void* to, const void* from) const {
    cuda_.check(cuda_.cudaMemcpyAsync(to, from, count_ * sizeof(float), cudaMemcpyDefault, nullptr),
                "copying");
    cuda_.check(cuda_.cudaStreamSynchronize(nullptr), "waiting");
  }

  const CudaRuntime& cuda_;
  std::size_t count_;
  GpuMemory memory_;
};

struct Job {
  GpuLibraries libraries;
  MemoryStore store;

  int device_of(int rank) const { return rank % libraries.cuda.devices(); }
  NcclOptions options(int rank) const {
    NcclOptions options;
    options.device = device_of(rank);
    options.meet_within = 60s;
    options.call_within = 20s;
    options.publish_every = 200ms;
    return options;
  }
  std::unique_ptr<NcclCommunicator> join(int rank, int size, const std::string& group,
                                         const NcclOptions& options) {
    return std::make_unique<NcclCommunicator>(libraries, Place{group, rank, size}, store, group, options);
  }
  /// A rank a GPU; on one GPU two if NCCL lets them.
  int size() {
    const int devices = std::min(libraries.cuda.devices(), 8);
    if (devices > 1) return devices;
    try {
      run_ranks(2, [&](int rank) { join(rank, 2, "try", options(rank)); });
      return 2;
    } catch (const Error& error) {
      std::printf("one rank alone: two on one GPU are refused: %s\n", error.what());
      return 1;
    }
  }
};

}  // namespace

TEST_CASE("collectives between GPUs, checked element by element") {
  Job job;
  const int size = job.size();
  std::printf("%d ranks\n", size);
  run_ranks(size, [&](int rank) {
    const CudaRuntime& cuda = job.libraries.cuda;
    const CurrentDevice device(cuda, job.device_of(rank));
    const auto world = job.join(rank, size, "world", job.options(rank));
    const auto me = static_cast<float>(rank), ranks = static_cast<float>(size);
    Floats in(cuda, kCount, me + 1), out(cuda, kCount, 0),
        all(cuda, kCount * static_cast<std::size_t>(size), me + 1);
    all_reduce(*world, in.input(), out.buffer(), Operation::sum);
    CHECK(out.are(ranks * (ranks + 1) / 2));
    all_reduce(*world, in.input(), out.buffer(), Operation::avg);
    CHECK(out.are((ranks + 1) / 2));
    reduce_scatter(*world, all.input(), out.buffer(), Operation::sum);
    CHECK(out.are(ranks * (ranks + 1) / 2));
    broadcast(*world, in.buffer(), size - 1);
    CHECK(in.are(ranks));
    all_gather(*world, in.input(), all.buffer());
    CHECK(all.are(ranks));
    all_to_all(*world, all.input(), all.buffer());
    CHECK(all.are(ranks));
    barrier(*world);
  });
}

TEST_CASE("two levels on one stream are what one is") {
  Job job;
  const int size = job.size();
  std::vector<std::vector<int>> groups;
  for (int rank = 0; rank < size; ++rank) {
    if (rank % 2 == 0) groups.emplace_back();
    groups.back().push_back(rank);
  }
  run_ranks(size, [&](int rank) {
    const CurrentDevice device(job.libraries.cuda, job.device_of(rank));
    NcclHierarchy hierarchy(job.libraries, {"levels", rank, size}, job.store, "levels", job.options(rank),
                            groups);
    Floats values(job.libraries.cuda, kCount, 1);
    all_reduce(hierarchy, values.buffer(), Operation::sum);
    CHECK(values.are(static_cast<float>(size)));
  });
}

TEST_CASE("a rank that does not come is named, what hangs is stopped, and the others go on without it") {
  Job job;
  const int size = job.size();
  if (size < 2) return;
  std::latch done(size - 1);
  run_ranks(size, [&](int rank) {
    const CudaRuntime& cuda = job.libraries.cuda;
    const CurrentDevice device(cuda, job.device_of(rank));
    NcclOptions options = job.options(rank);
    options.call_within = 2s;
    const auto world = job.join(rank, size, "late", options);
    Floats values(cuda, kCount, 1);
    all_reduce(*world, values.buffer(), Operation::sum);
    if (rank == size - 1) return done.wait();
    try {
      all_reduce(*world, values.buffer(), Operation::sum);
      CHECK_MESSAGE(false, "it ended");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::timeout);
      const std::string absent = "rank " + std::to_string(size - 1) + " (it has made 1 call) did not come";
      CHECK(std::string(error.what()).find(absent) != std::string::npos);
    }
    const auto left = world->shrink({size - 1});
    Floats again(cuda, kCount, 1);
    all_reduce(*left, again.buffer(), Operation::sum);
    CHECK(again.are(static_cast<float>(size - 1)));
    done.count_down();
  });
}

TEST_CASE("calls that differ are found before the deadline") {
  Job job;
  const int size = job.size();
  if (size < 2) return;
  run_ranks(size, [&](int rank) {
    const CurrentDevice device(job.libraries.cuda, job.device_of(rank));
    const auto world = job.join(rank, size, "differ", job.options(rank));
    Floats values(job.libraries.cuda, rank == 0 ? kCount : kCount / 2, 1);
    try {
      all_reduce(*world, values.buffer(), Operation::sum);
      CHECK_MESSAGE(false, "it ended");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
    }
  });
}
