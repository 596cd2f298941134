#include "collective/nccl/nccl_hierarchy.h"

#include <doctest/doctest.h>

#include "collective/base/communicator_ring.h"
#include "tests/support/fake_gpu/gpu_ranks.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace fleetrun::tests;

TEST_CASE("an all-reduce in two levels is that of all ranks alike, whatever the groups") {
  for (const std::vector<std::vector<int>>& groups :
       {std::vector<std::vector<int>>{{0, 1}, {2, 3}}, {{0, 1, 2}, {3}}, {{0, 3}, {1, 2}}, {{0, 1, 2, 3}}}) {
    GpuJob job;
    run_ranks(4, [&](int rank) {
      NcclOptions options;
      options.device = rank;
      NcclHierarchy hierarchy(job.libraries, {"world", rank, 4}, job.store, "world", options, groups);
      for (int i = 0; i < 3; ++i) {
        std::vector<float> values(100, static_cast<float>(rank + 1)), sum(100);
        all_reduce(hierarchy, ConstBuffer{values.data(), 100, DataType::float32},
                   Buffer{sum.data(), 100, DataType::float32}, Operation::sum);
        CHECK(sum == std::vector<float>(100, 10));
        CHECK(values == std::vector<float>(100, static_cast<float>(rank + 1)));
        hierarchy.start(all_reduce_of(values))->wait();
        CHECK(values == sum);
      }
      std::vector<float> average(5, static_cast<float>(2 * rank));
      all_reduce(hierarchy, Buffer{average.data(), 5, DataType::float32}, Operation::avg);
      CHECK(average == std::vector<float>(5, 3));
      std::vector<std::int64_t> counts(5, rank == 3 ? 4 : 1);
      all_reduce(hierarchy, Buffer{counts.data(), 5, DataType::int64}, Operation::avg);
      CHECK(counts == std::vector<std::int64_t>(5, 1));
      barrier(hierarchy);
    });
  }
}

TEST_CASE("groups that are not the ranks are refused") {
  GpuJob job;
  const Error error = error_of([&] {
    NcclHierarchy(job.libraries, {"world", 0, 4}, job.store, "world", {}, {{0, 1}, {2}});
  });
  CHECK(error.kind() == ErrorKind::config);
  CHECK(std::string(error.what()) ==
        "group world in two levels: the inner groups have 3 ranks, the group has 4");
  CHECK(error.hint() == "put every rank into one inner group");
}

TEST_CASE("a ring of communicators has several calls under way") {
  GpuJob job;
  run_ranks(3, [&](int rank) {
    std::vector<std::unique_ptr<Communicator>> members;
    for (const std::string name : {"0", "1", "2"}) members.push_back(job.join(rank, 3, {}, "ring " + name));
    CommunicatorRing ring(std::move(members));
    std::vector<std::vector<float>> values(10, std::vector<float>(50, 1));
    std::vector<std::unique_ptr<Work>> works;
    for (auto& each : values) works.push_back(ring.start(all_reduce_of(each)));
    for (const auto& work : works) work->wait();
    for (const auto& each : values) CHECK(each == std::vector<float>(50, 3));
  });
}
