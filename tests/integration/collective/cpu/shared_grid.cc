// No wrong element in any call over shared memory: all kinds × operations × types × counts × ranks, in place
// and out, at addresses that are not aligned.
//
// usage: collective_shared_grid threads|processes RANKS,… COUNT,…
//
// Ends with "N calls, M wrong elements". Of the kinds whose buffers grow
// with the ranks there are COUNT elements in all.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "collective/cpu/shared_communicator.h"
#include "runtime/base/text.h"
#include "tests/support/exact_grid.h"
#include "tests/support/forked_store.h"

namespace {

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace fleetrun::tests;

Tally run_rank(int rank, int ranks, Store& store, const std::vector<std::size_t>& counts) {
  try {
    const auto communicator =
        make_shared_communicator({"grid", rank, ranks}, store, {.call_within = std::chrono::minutes(2)});
    return make_calls(*communicator, counts);
  } catch (const Error& error) {
    std::fprintf(stderr, "rank %d of %d: %s\n", rank, ranks, error.what());
    return {0, 1};
  }
}

/// In one mapping of the memory, so that ThreadSanitizer sees what the ranks do to each other.
Tally in_threads(int ranks, const std::vector<std::size_t>& counts) {
  const auto communicators =
      make_thread_communicators("grid", ranks, {.call_within = std::chrono::minutes(2)});
  std::vector<Tally> tallies(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        tallies[rank] = make_calls(*communicators[rank], counts);
      } catch (const Error& error) {
        std::fprintf(stderr, "rank %zu of %d: %s\n", rank, ranks, error.what());
        tallies[rank] = {0, 1};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Tally all = tallies[0];
  for (std::size_t r = 1; r < tallies.size(); ++r) all.wrong += tallies[r].wrong;
  return all;
}

Tally in_processes(int ranks, const std::vector<std::size_t>& counts) {
  ForkedStore store;
  std::vector<pid_t> children;
  for (int rank = 1; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(run_rank(rank, ranks, store, counts).wrong == 0 ? 0 : 1);
    children.push_back(child);
  }
  Tally all = run_rank(0, ranks, store, counts);
  for (const pid_t child : children) {
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0) ++all.wrong;
  }
  return all;
}

std::vector<std::size_t> numbers(const char* text) {
  std::vector<std::size_t> values;
  for (const std::string& word : split(text, ',')) {
    const auto value = parse_integer(word);
    if (!value || *value < 0) {
      std::fprintf(stderr, "%s is not a number\n", word.c_str());
      std::exit(2);
    }
    values.push_back(static_cast<std::size_t>(*value));
  }
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc == 4 ? argv[1] : "";
  if (how != "threads" && how != "processes") {
    std::fprintf(stderr, "usage: collective_shared_grid threads|processes RANKS,... COUNT,...\n");
    return 2;
  }
  const std::vector<std::size_t> counts = numbers(argv[3]);
  Tally all;
  for (const std::size_t ranks : numbers(argv[2])) {
    const Tally tally = how == "threads" ? in_threads(static_cast<int>(ranks), counts)
                                         : in_processes(static_cast<int>(ranks), counts);
    all.calls += tally.calls;
    all.wrong += tally.wrong;
  }
  std::printf("%zu calls, %zu wrong elements\n", all.calls, all.wrong);
  return all.wrong == 0 && all.calls > 0 ? 0 : 1;
}
