// Ranks that do not come, die, disagree, or are told to stop; what the survivors do then. Against the fake
// NCCL, which hangs as the real one does until it is aborted.
#include <doctest/doctest.h>

#include <latch>

#include "collective/nccl/nccl_communicator.h"
#include "tests/support/fake_gpu/gpu_ranks.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace fleetrun::tests;
using namespace std::chrono_literals;

namespace {

NcclOptions patient() {
  NcclOptions options;
  options.publish_every = 40ms;
  options.look_every = 2ms;
  return options;
}
NcclOptions impatient() {
  NcclOptions options = patient();
  options.call_within = 200ms;
  return options;
}

}  // namespace

TEST_CASE("a rank that does not come to the communicator is named by all others") {
  GpuJob job;
  run_ranks(3, [&](int rank) {
    if (rank == 1) return;
    NcclOptions options = patient();
    options.meet_within = 100ms;
    const Error error = error_of([&] { job.join(rank, 3, options); });
    CHECK(error.kind() == ErrorKind::timeout);
    CHECK(std::string(error.what()) == "group world of 3: rank 1 did not come");
    CHECK(error.hint() == "look into the log of the first of them");
  });
}

TEST_CASE("ranks with other settings are refused before NCCL is asked") {
  GpuJob job;
  run_ranks(2, [&](int rank) {
    NcclOptions options = impatient();
    options.checks_calls = rank == 0;
    const Error error = error_of([&] { job.join(rank, 2, options); });
    CHECK(error.kind() == ErrorKind::config);
    CHECK(contains(error.what(), "has NCCL 2.28.9, not checking calls"));
    CHECK(error.hint() == "start all ranks with the same versions and settings");
  });
}

TEST_CASE("a rank that does not come to a call is named at the deadline, with how far it is") {
  GpuJob job;
  const long held = fake_cuda_held();
  std::latch others_failed(2);
  run_gpu_ranks(job, 3, impatient(), [&](NcclCommunicator& communicator) {
    std::vector<float> values(4, 1);
    communicator.run(all_reduce_of(values));
    if (communicator.place().rank == 1) return others_failed.wait();
    const Error error = error_of([&] { communicator.run(all_reduce_of(values)); });
    others_failed.count_down();
    CHECK(error.kind() == ErrorKind::timeout);
    CHECK(contains(
        error.what(),
        "group world: all_reduce of 4 float32 (sum), its call 1, has not ended within 200 ms: rank 1 (it "
        "has made "));
    CHECK(contains(error.what(), ") did not come"));
    CHECK(error.hint() == "look into the log of the first of them");
    const Error again = error_of([&] { communicator.run(all_reduce_of(values)); });
    CHECK(std::string(again.what()) == error.what());
  });
  CHECK(fake_cuda_held() == held);
}

TEST_CASE("a sender that does not come is named by who waits for it") {
  GpuJob job;
  std::latch failed(1);
  run_gpu_ranks(job, 2, impatient(), [&](NcclCommunicator& communicator) {
    if (communicator.place().rank == 0) return failed.wait();
    std::vector<float> values(4);
    const Error error = error_of([&] { receive(communicator, {values.data(), 4, DataType::float32}, 0); });
    failed.count_down();
    CHECK(error.kind() == ErrorKind::timeout);
    CHECK(std::string(error.what()) ==
          "group world: receive of 4 float32 from rank 0, has not ended within 200 ms: rank 0 did not come");
  });
}

TEST_CASE("ranks whose calls differ are told so long before a deadline, both calls by name") {
  GpuJob job;
  run_gpu_ranks(job, 3, patient(), [&](NcclCommunicator& communicator) {
    std::vector<float> values(8, 1);
    communicator.run(all_reduce_of(values));
    values.resize(communicator.place().rank == 2 ? 5 : 8);
    const Error error = error_of([&] { communicator.run(all_reduce_of(values)); });
    CHECK(error.kind() == ErrorKind::config);
    const std::string here = "all_reduce of 8 float32 (sum), its call 1",
                      there = "all_reduce of 5 float32 (sum), its call 1", text = error.what();
    // Each rank compares; the first one's words may reach another before it has compared itself.
    const bool is_named = contains(text, "calls " + here + "; rank 2 calls " + there) ||
                          contains(text, "rank 2 calls " + there + "; rank 0 calls " + here);
    CHECK(is_named);
    CHECK(error.hint() == "all ranks of a group make the same calls in the same order");
  });
}

TEST_CASE("an error that NCCL tells of ends all ranks' calls") {
  GpuJob job;
  std::latch started(2), failed(2);
  run_gpu_ranks(job, 3, patient(), [&](NcclCommunicator& communicator) {
    std::vector<float> values(4, 1);
    communicator.run(all_reduce_of(values));
    if (communicator.place().rank == 2) {
      started.wait();
      fake_nccl_fails(0, ncclRemoteError);
      return failed.wait();
    }
    const Error error = error_of([&] {
      const auto work = communicator.start(all_reduce_of(values));
      started.count_down();
      work->wait();
    });
    failed.count_down();
    CHECK(error.kind() == ErrorKind::network);
    CHECK(std::string(error.what()) ==
          "group world: NCCL says: remote process exited or there was a network error (the fake one)");
    CHECK(contains(error.hint(), "NCCL_DEBUG=INFO"));
  });
}

TEST_CASE("abort() ends what is under way on all ranks, with its reason") {
  GpuJob job;
  const Error why(ErrorKind::network, "rank 3 died of signal 9", "see its log");
  std::latch started(2), failed(2);
  run_gpu_ranks(job, 4, patient(), [&](NcclCommunicator& communicator) {
    const int rank = communicator.place().rank;
    std::vector<float> values(4, 1);
    if (rank == 3) return failed.wait();
    if (rank == 0) {
      started.wait();
      communicator.abort(why);
      return failed.wait();
    }
    const auto work = communicator.start(all_reduce_of(values));
    started.count_down();
    const Error error = error_of([&] { work->wait(); });
    failed.count_down();
    CHECK(error.kind() == ErrorKind::network);
    CHECK(std::string(error.what()) == why.what());
    CHECK(error.hint() == why.hint());
  });
}

TEST_CASE("what had ended before a failure has ended well") {
  GpuJob job;
  run_gpu_ranks(job, 2, patient(), [&](NcclCommunicator& communicator) {
    std::vector<float> values(4, 1);
    const auto work = communicator.start(all_reduce_of(values));
    work->wait();
    communicator.abort(Error(ErrorKind::network, "over"));
    CHECK(work->has_ended());
    CHECK_NOTHROW(work->wait());
    CHECK(std::string(error_of([&] { communicator.run(all_reduce_of(values)); }).what()) == "over");
  });
}

TEST_CASE("the survivors of a failure go on without the rank that is lost") {
  for (const std::string nccl : {FAKE_NCCL, FAKE_NCCL_OLDER}) {
    GpuJob job(nccl);
    const bool shrinks = nccl == FAKE_NCCL;
    const long held = fake_cuda_held(), shrunk = fake_nccl().counts.shrunk;
    std::latch done(3);
    run_ranks(4, [&](int rank) {
      auto world = job.join(rank, 4, impatient());
      if (rank == 1) return done.wait();
      std::vector<float> values(4, static_cast<float>(rank));
      CHECK(error_of([&] { world->run(all_reduce_of(values)); }).kind() == ErrorKind::timeout);
      const auto left = world->shrink({1});
      CHECK(left->place().size == 3);
      CHECK(left->place().rank == (rank == 0 ? 0 : rank - 1));
      world.reset();
      values.assign(4, static_cast<float>(rank));
      left->run(all_reduce_of(values));
      CHECK(values == std::vector<float>(4, 5));
      done.count_down();
    });
    CHECK(fake_nccl().counts.shrunk == shrunk + (shrinks ? 3 : 0));
    CHECK(fake_cuda_held() == held);
  }
}

TEST_CASE("a communicator that works can be shrunk, too") {
  GpuJob job;
  run_ranks(4, [&](int rank) {
    const auto world = job.join(rank, 4, patient());
    std::vector<float> values(4, 1);
    world->run(all_reduce_of(values));
    if (rank >= 2) return;
    const auto left = world->shrink({3, 2});
    values.assign(4, 1);
    left->run(all_reduce_of(values));
    CHECK(values == std::vector<float>(4, 2));
  });
}

TEST_CASE("ranks that a group has not, and this one, cannot be left out") {
  GpuJob job;
  run_gpu_ranks(job, 2, patient(), [&](NcclCommunicator& communicator) {
    const int rank = communicator.place().rank;
    CHECK(std::string(error_of([&] { communicator.shrink({rank}); }).what()) ==
          "group world without rank " + std::to_string(rank) + ": this process is rank " +
              std::to_string(rank) + " of 2");
    CHECK(contains(error_of([&] { communicator.shrink({2}); }).what(), "without rank 2"));
  });
}
