// One of four ranks is killed at a random moment of endless calls;
// all others must name it in less than a second.
//
// usage: collective_shared_kills --count=N --seed=N
//
// Ends with "N runs, M failures; slowest report MILLISECONDS ms". The calls are of many kinds and sizes, so
// that ranks are hit while they copy, reduce, spin and sleep. Time is measured from before the kill to when
// the last survivor has its error.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "collective/cpu/shared_communicator.h"
#include "tests/support/child_process.h"
#include "tests/support/forked_store.h"

namespace {

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace fleetrun::tests;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 4;

void call_for_ever(Communicator& rank, unsigned seed) {
  std::mt19937 random(seed);  // the same on all ranks
  std::vector<float> values(3'000'000), results(values.size());
  for (;;) {
    const std::size_t max = random() % 3 == 0 ? 100 : random() % 2 == 0 ? 20'000 : 600'000;
    const std::size_t count = random() % max + 1;
    switch (random() % 5) {
      case 0:
        all_gather(rank, {values.data(), count, DataType::float32},
                   {results.data(), count * kRanks, DataType::float32});
        break;
      case 1:
        broadcast(rank, {values.data(), count, DataType::float32}, static_cast<int>(random() % kRanks));
        break;
      case 2:
        barrier(rank);
        break;
      default:
        all_reduce(rank, {values.data(), count, DataType::float32}, Operation::max);
    }
  }
}

void be_rank(int output, Store& store, int rank, unsigned seed) {
  const auto say = [&](const std::string& text) {
    static_cast<void>(!::write(output, (text + "\n").data(), text.size() + 1));
  };
  try {
    const auto communicator = make_shared_communicator({"kills", rank, kRanks}, store);
    say("ready");
    call_for_ever(*communicator, seed);
  } catch (const Error& error) {
    say(error.what());
  }
}

/// What went wrong; empty: nothing. `took` becomes how long the last report took.
std::string run(unsigned seed, std::chrono::milliseconds& took) {
  std::mt19937 random(seed);
  ForkedStore store;
  std::vector<std::unique_ptr<ChildProcess>> ranks;
  for (int r = 0; r < kRanks; ++r)
    ranks.push_back(std::make_unique<ChildProcess>([&, r](int output) { be_rank(output, store, r, seed); }));
  for (const auto& rank : ranks)
    if (rank->line(std::chrono::seconds(20)) != "ready") return "the ranks did not meet";
  ::poll(nullptr, 0, static_cast<int>(random() % 60));
  const std::size_t victim = random() % kRanks;
  const auto begin = Clock::now();
  ranks[victim]->signal(SIGKILL);
  for (std::size_t r = 0; r < kRanks; ++r) {
    if (r == victim) continue;
    const std::string text = ranks[r]->line(std::chrono::minutes(1)).value_or("nothing");
    if (!text.starts_with("group kills: rank " + std::to_string(victim) + " (process ") ||
        !text.ends_with(") has died"))
      return "rank " + std::to_string(r) + " says of rank " + std::to_string(victim) + ": " + text;
  }
  took = std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - begin);
  return took.count() < 1000 ? "" : "the last report took " + std::to_string(took.count()) + " ms";
}

}  // namespace

int main(int argc, char** argv) {
  unsigned count = 100, seed = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("--count=")) {
      count = static_cast<unsigned>(std::atoi(word.c_str() + 8));
    } else if (word.starts_with("--seed=")) {
      seed = static_cast<unsigned>(std::atoi(word.c_str() + 7));
    } else {
      std::fprintf(stderr, "usage: collective_shared_kills --count=N --seed=N\n");
      return 2;
    }
  }
  unsigned failures = 0;
  std::chrono::milliseconds slowest{0};
  for (unsigned i = 0; i < count; ++i) {
    std::chrono::milliseconds took{0};
    const std::string wrong = run(seed + i, took);
    slowest = std::max(slowest, took);
    if (wrong.empty()) continue;
    ++failures;
    std::fprintf(stderr, "seed %u: %s\n", seed + i, wrong.c_str());
  }
  std::printf("%u runs, %u failures; slowest report %lld ms\n", count, failures,
              static_cast<long long>(slowest.count()));
  return failures == 0 && count > 0 ? 0 : 1;
}
