// No wrong element in any call of a world's communicators, between hosts and in two levels: all kinds ×
// operations × types × counts × ranks. Ranks are threads, which say that they are on different hosts.
//
// usage: collective_world_grid gloo|hosts|mixed RANKS,… COUNT,…
//   gloo    all ranks alike, by Gloo
//   hosts   two consecutive ranks on each host
//   mixed   ranks of three hosts in turn, so that no host's are consecutive
//
// Ends with "N calls, M wrong elements". Of the kinds whose buffers grow
// with the ranks there are COUNT elements in all.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "collective/groups/world.h"
#include "runtime/base/text.h"
#include "tests/support/exact_grid.h"
#include "tests/support/port_lease.h"

namespace {

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace fleetrun::tests;

std::string host_of(const std::string& shape, int rank) {
  if (shape == "gloo") return "host of rank " + std::to_string(rank);
  return "host " + std::to_string(shape == "hosts" ? rank / 2 : rank % 3);
}

Tally run_rank(const std::string& shape, WorldOptions options, const std::vector<std::size_t>& counts) {
  try {
    options.host_key = host_of(shape, options.rank);
    const auto world = World::join(options);
    const auto communicator = world->make_communicator("grid");
    const Tally tally = make_calls(*communicator, counts);
    barrier(*communicator);
    return tally;
  } catch (const Error& error) {
    std::fprintf(stderr, "rank %d of %d: %s\n", options.rank, options.size, render(error, "grid").c_str());
    return {0, 1};
  }
}

Tally run_ranks(const std::string& shape, int ranks, const std::vector<std::size_t>& counts) {
  const PortLease port;
  WorldOptions options;
  options.size = ranks;
  options.store = port.endpoint();
  options.access = {Secret::random(), "the test"};
  options.call_within = std::chrono::minutes(2);
  std::vector<Tally> tallies(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    options.rank = rank;
    threads.emplace_back(
        [&, rank, options] { tallies[static_cast<std::size_t>(rank)] = run_rank(shape, options, counts); });
  }
  for (std::thread& thread : threads) thread.join();
  Tally all = tallies[0];
  for (std::size_t r = 1; r < tallies.size(); ++r) all.wrong += tallies[r].wrong;
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
  const std::string shape = argc == 4 ? argv[1] : "";
  if (shape != "gloo" && shape != "hosts" && shape != "mixed") {
    std::fprintf(stderr, "usage: collective_world_grid gloo|hosts|mixed RANKS,... COUNT,...\n");
    return 2;
  }
  const std::vector<std::size_t> counts = numbers(argv[3]);
  Tally all;
  for (const std::size_t ranks : numbers(argv[2])) {
    const Tally tally = run_ranks(shape, static_cast<int>(ranks), counts);
    all.calls += tally.calls;
    all.wrong += tally.wrong;
  }
  std::printf("%zu calls, %zu wrong elements\n", all.calls, all.wrong);
  return all.wrong == 0 && all.calls > 0 ? 0 : 1;
}
