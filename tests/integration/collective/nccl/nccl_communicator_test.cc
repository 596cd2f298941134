// The host's part of the NCCL communicator, against a fake CUDA runtime and a fake NCCL
// (tests/support/fake_gpu): order, groups, what calls become.
// That real GPUs do the same is tests/gpu's to show.
#include "collective/nccl/nccl_communicator.h"

#include <doctest/doctest.h>

#include <array>
#include <mutex>
#include <numeric>

#include "tests/support/fake_gpu/gpu_ranks.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace fleetrun::tests;

namespace {

using Floats = std::vector<float>;

Buffer buffer(Floats& values) {
  return {values.data(), values.size(), DataType::float32};
}
ConstBuffer input(const Floats& values) {
  return {values.data(), values.size(), DataType::float32};
}

Floats from(float first, std::size_t count) {
  Floats values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

TEST_CASE("all-reduces of all operations, in place and out of place, of 1 to 5 ranks") {
  constexpr std::array<float, 5> kFactorials{1, 2, 6, 24, 120};
  for (int size = 1; size <= 5; ++size) {
    GpuJob job;
    run_gpu_ranks(job, size, {}, [&](NcclCommunicator& communicator) {
      const auto rank = static_cast<float>(communicator.place().rank), ranks = static_cast<float>(size);
      for (const std::size_t count : {0u, 1u, 7u, 1000u}) {
        const Floats in(count, rank + 1);
        Floats out(count), changed = in;
        all_reduce(communicator, input(in), buffer(out), Operation::sum);
        CHECK(out == Floats(count, ranks * (ranks + 1) / 2));
        all_reduce(communicator, buffer(changed), Operation::avg);
        CHECK(changed == Floats(count, (ranks + 1) / 2));
        all_reduce(communicator, input(in), buffer(out), Operation::max);
        CHECK(out == Floats(count, ranks));
        all_reduce(communicator, input(in), buffer(out), Operation::min);
        CHECK(out == Floats(count, 1));
        all_reduce(communicator, input(in), buffer(out), Operation::prod);
        CHECK(out == Floats(count, kFactorials[static_cast<std::size_t>(size - 1)]));
      }
    });
  }
}

TEST_CASE("broadcast, reduce, all_gather, reduce_scatter, all_to_all, send, receive and barrier") {
  GpuJob job;
  run_gpu_ranks(job, 3, {}, [&](NcclCommunicator& communicator) {
    const int rank = communicator.place().rank;
    const auto me = static_cast<float>(rank);
    Floats values(4, me);
    broadcast(communicator, buffer(values), 2);
    CHECK(values == Floats(4, 2));

    const Floats mine{me, me + 10};
    Floats sum(rank == 1 ? 2 : 0), all(6), share(1);
    reduce(communicator, input(mine), buffer(sum), Operation::sum, 1);
    if (rank == 1) CHECK(sum == Floats{3, 33});
    all_gather(communicator, input(mine), buffer(all));
    CHECK(all == Floats{0, 10, 1, 11, 2, 12});
    reduce_scatter(communicator, input(from(me, 3)), buffer(share), Operation::sum);
    CHECK(share.front() == 3 * me + 3);

    Floats exchanged(3), in_place = from(10 * me, 3);
    all_to_all(communicator, input(in_place), buffer(exchanged));
    CHECK(exchanged == Floats{me, 10 + me, 20 + me});
    all_to_all(communicator, input(in_place), buffer(in_place));
    CHECK(in_place == exchanged);

    if (rank == 0) send(communicator, input(mine), 2);
    Floats received(2);
    if (rank == 2) {
      receive(communicator, buffer(received), 0);
      CHECK(received == Floats{0, 10});
    }
    barrier(communicator);
  });
}

TEST_CASE("counts that differ by rank, none among them") {
  GpuJob job;
  run_gpu_ranks(job, 3, {}, [&](NcclCommunicator& communicator) {
    using Counts = std::array<std::size_t, 3>;
    const auto rank = static_cast<std::size_t>(communicator.place().rank);
    const auto me = static_cast<float>(rank);
    const Counts counts{2, 0, 3};
    const std::array<Floats, 3> maxima{Floats{2, 3}, Floats{}, Floats{4, 5, 6}};
    Floats all(5), share(counts[rank]);
    all_gather(communicator, input(from(10 * me, counts[rank])), buffer(all), counts);
    CHECK(all == Floats{0, 1, 20, 21, 22});
    reduce_scatter(communicator, input(from(me, 5)), buffer(share), Operation::max, counts);
    CHECK(share == maxima[rank]);

    // Rank r has r values for each rank but the first.
    const Counts to{0, rank, rank}, senders = rank == 0 ? Counts{} : Counts{0, 1, 2};
    Floats received(rank == 0 ? 0 : 3);
    all_to_all(communicator, input(Floats(2 * rank, me)), to, buffer(received), senders);
    if (rank > 0) CHECK(received == Floats{1, 2, 2});
  });
}

TEST_CASE("int16, which NCCL lacks, is moved, and not reduced; nor are bits") {
  GpuJob job;
  run_gpu_ranks(job, 2, {}, [&](NcclCommunicator& communicator) {
    std::vector<std::int16_t> values(3,
                                     communicator.place().rank == 1 ? std::int16_t{-300} : std::int16_t{0});
    const Buffer all{values.data(), values.size(), DataType::int16};
    broadcast(communicator, all, 1);
    CHECK(values == std::vector<std::int16_t>(3, -300));
    const Error error = error_of([&] { all_reduce(communicator, all, Operation::sum); });
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()) == "all_reduce of 3 int16 (sum): NCCL cannot reduce int16");
    CHECK(error.hint() == "convert the values to int32");
    const Buffer bytes{values.data(), 6, DataType::uint8};
    CHECK(std::string(error_of([&] { all_reduce(communicator, bytes, Operation::bit_and); }).what()) ==
          "all_reduce of 6 uint8 (bit_and): NCCL cannot combine bits");
    barrier(communicator);  // it goes on
  });
}

TEST_CASE("calls that were started end in their order, and more of them than are under way at once") {
  GpuJob job;
  run_gpu_ranks(job, 2, {}, [&](NcclCommunicator& communicator) {
    std::vector<Floats> values(200, Floats(5, 1));
    std::vector<std::unique_ptr<Work>> works;
    for (auto& each : values) works.push_back(communicator.start(all_reduce_of(each)));
    works.back()->wait();
    for (const auto& work : works) CHECK(work->has_ended());
    for (const auto& each : values) CHECK(each == Floats(5, 2));
  });
}

TEST_CASE("a call comes after what the caller's stream has, and a stream can be held until it has ended") {
  GpuJob job;
  const CudaRuntime& cuda = job.libraries.cuda;
  run_ranks(2, [&](int rank) {
    const CurrentDevice device(cuda, rank);
    const Stream caller(cuda);
    NcclOptions options;
    options.caller_stream = caller.value();
    const auto communicator = job.join(rank, 2, options);
    Floats made(1000, 1), values(1000), copy(1000);
    const std::size_t bytes = values.size() * sizeof(float);
    cuda.check(cuda.cudaMemcpyAsync(values.data(), made.data(), bytes, cudaMemcpyDefault, caller.value()),
               "copying");
    const Call call = all_reduce_of(values);
    const auto work = communicator->start_group({&call, 1});
    work->hold(caller.value());
    cuda.check(cuda.cudaMemcpyAsync(copy.data(), values.data(), bytes, cudaMemcpyDefault, caller.value()),
               "copying");
    cuda.check(cuda.cudaStreamSynchronize(caller.value()), "waiting");
    CHECK(copy == Floats(1000, 2));
    work->wait();
  });
}

TEST_CASE("a call comes after what the stream has that it names") {
  GpuJob job;
  const CudaRuntime& cuda = job.libraries.cuda;
  run_ranks(2, [&](int rank) {
    const CurrentDevice device(cuda, rank);
    const auto communicator = job.join(rank, 2);
    const Stream own(cuda);
    Floats made(1000, 1), values(1000, 0);
    // The stream stands still until the call has been started.
    std::mutex gate;
    std::unique_lock closed(gate);
    cuda.check(cudaLaunchHostFunc(
                   own.value(),
                   [](void* mutex) { const std::lock_guard lock(*static_cast<std::mutex*>(mutex)); }, &gate),
               "standing still");
    cuda.check(cuda.cudaMemcpyAsync(values.data(), made.data(), values.size() * sizeof(float),
                                    cudaMemcpyDefault, own.value()),
               "copying");
    Call call = all_reduce_of(values);
    call.stream = own.value();
    const auto work = communicator->start(call);
    CHECK_FALSE(work->has_ended());
    closed.unlock();
    work->wait();
    CHECK(values == Floats(1000, 2));
  });
}

TEST_CASE("a group is one of NCCL's, whatever is in it") {
  GpuJob job;
  NcclOptions options;
  options.checks_calls = false;
  const long before = fake_nccl().counts.groups;
  run_gpu_ranks(job, 2, options, [&](NcclCommunicator& communicator) {
    Floats a(3, 1), b(5, 2), got(2);
    const Floats sent(2, static_cast<float>(communicator.place().rank));
    const int other = 1 - communicator.place().rank;
    const std::array calls{
        all_reduce_of(a),
        all_reduce_of(b),
        Call{.kind = CallKind::send, .input = sent.data(), .count = 2, .root = other},
        Call{.kind = CallKind::receive, .output = got.data(), .count = 2, .root = other},
    };
    communicator.start_group(calls)->wait();
    CHECK(a == Floats(3, 2));
    CHECK(b == Floats(5, 4));
    CHECK(got == Floats(2, static_cast<float>(other)));
  });
  CHECK(fake_nccl().counts.groups == before + 2);  // one a rank
}

TEST_CASE("everything that was made is given back, by NCCL's own end") {
  const long held = fake_cuda_held(), destroyed = fake_nccl().counts.destroyed,
             aborted = fake_nccl().counts.aborted;
  {
    GpuJob job;
    run_gpu_ranks(job, 4, {}, [&](NcclCommunicator& communicator) {
      Floats values(64, 1);
      all_reduce(communicator, buffer(values), Operation::sum);
      all_to_all(communicator, input(values), buffer(values));
    });
  }
  CHECK(fake_cuda_held() == held);
  CHECK(fake_nccl().counts.destroyed == destroyed + 4);
  CHECK(fake_nccl().counts.aborted == aborted);
}

TEST_CASE("a device that is not there is refused before anybody is waited for") {
  GpuJob job;
  const Error error = error_of([&] { job.join(8, 16); });
  CHECK(error.kind() == ErrorKind::host);
  CHECK(std::string(error.what()) == "rank 8 is for device 8, and there are 8");
  CHECK(error.hint() == "check --gpus and CUDA_VISIBLE_DEVICES");
}
