// all_reduce over shared memory, ranks as processes: collective_shared_bench RANKS in|out BYTES…
// What the machine's memory allows: collective_shared_bench limits
// Other slots: collective_shared_bench RANKS --slot=KIB --whole=KIB in|out BYTES…
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "collective/cpu/reduce_kernels.h"
#include "collective/cpu/shared_communicator.h"
#include "tests/bench/collective/reduce_rows.h"
#include "tests/support/forked_store.h"

namespace {

using namespace fleetrun;
using namespace fleetrun::collective;

/// Each rank has a core of its own where there are as many, as mpirun's --bind-to core gives them.
void bind_to_core(int rank, int size) {
  cpu_set_t all, own;
  if (::sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < size) return;
  CPU_ZERO(&own);
  for (int core = 0, place = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &all) && place++ == rank) CPU_SET(core, &own);
  ::sched_setaffinity(0, sizeof own, &own);
}

int run_rank(int rank, int size, Store& store, const SharedOptions& options, int argc, char** argv) {
  bind_to_core(rank, size);
  const auto communicator = make_shared_communicator({"bench", rank, size}, store, options);
  bench::Ranks ranks{rank, size, [&] { barrier(*communicator); },
                     [&](float* input, float* output, std::size_t count) {
                       all_reduce(*communicator, {input, count, DataType::float32},
                                  {output, count, DataType::float32}, Operation::sum);
                     }};
  return bench::run(ranks, argc, argv);
}

/// GB/s of `work`, which moves `bytes`, on `threads` threads at once: the median of nine.
double rate(int threads, std::size_t bytes,
            const std::function<void(float*, float*, float*, std::size_t)>& work) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kBytes = 128 << 20;
  std::vector<std::unique_ptr<bench::Pages>> pages;
  for (int i = 0; i < 3 * threads; ++i) pages.push_back(std::make_unique<bench::Pages>(kBytes));
  std::vector<double> figures;
  for (int round = 0; round < 9; ++round) {
    const auto begin = Clock::now();
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t) {
      const auto at = [&, t](int i) { return pages[static_cast<std::size_t>(3 * t + i)]->data.get(); };
      running.emplace_back([&, a = at(0), b = at(1), c = at(2)] { work(a, b, c, kBytes / sizeof(float)); });
    }
    for (std::thread& one : running) one.join();
    const std::chrono::duration<double> took = Clock::now() - begin;
    figures.push_back(static_cast<double>(bytes) * kBytes * threads / took.count() / 1e9);
  }
  std::sort(figures.begin(), figures.end());
  return figures[figures.size() / 2];
}

void print_limits() {
  const auto copy = [](float* a, float* b, float*, std::size_t count) {
    std::memcpy(a, b, count * sizeof(float));
  };
  const auto add = [](float* a, float* b, float* c, std::size_t count) {
    const void* inputs[] = {b, c};
    reduce({}, a, inputs, count);
  };
  for (const int threads : {1, 2}) {
    std::printf("limit copy %d %.2f\n", threads, rate(threads, 2, copy));
    std::printf("limit add %d %.2f\n", threads, rate(threads, 3, add));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "limits") {
    print_limits();
    return 0;
  }
  if (argc < 4) {
    std::fprintf(stderr, "usage: collective_shared_bench limits | RANKS in|out BYTES...\n");
    return 2;
  }
  SharedOptions options;
  int next = 2;
  for (; next < argc && argv[next][0] == '-'; ++next) {
    const std::string word = argv[next];
    const std::size_t kib = std::strtoull(word.substr(word.find('=') + 1).c_str(), nullptr, 10);
    (word.starts_with("--slot=") ? options.slot_bytes : options.whole_bytes) = kib * 1024;
  }
  const int size = std::atoi(argv[1]);
  tests::ForkedStore store;
  std::vector<pid_t> children;
  for (int rank = 1; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(run_rank(rank, size, store, options, argc - next, argv + next));
    children.push_back(child);
  }
  const int status = run_rank(0, size, store, options, argc - next, argv + next);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  return status;
}
