// One rank of a world, as the environment describes it: for tests that start ranks on hosts of their own.
//
// usage: collective_world_rank COUNT CALLS [levels|alike]
//
// Makes CALLS all_reduces of COUNT float32, checks every element, and prints "rank R of P: N wrong, MS ms a
// call"; CALLS of 0: as many as it can, after the line "ready", until one fails:
// then the error, and status 3.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "collective/groups/world.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"

namespace {

using namespace fleetrun;
using namespace fleetrun::collective;

using Clock = std::chrono::steady_clock;

void fill(std::vector<float>& values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(rank + static_cast<int>(i % 7));
}

std::size_t wrong_in(const std::vector<float>& values, int ranks) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    wrong += values[i] != static_cast<float>(ranks * (ranks - 1) / 2 + ranks * static_cast<int>(i % 7));
  return wrong;
}

int run(std::size_t count, int calls, const std::string& shape) {
  const auto world = World::join(world_options_from(Environ::of_process()));
  CommunicatorOptions options;
  if (!shape.empty()) options.hierarchical = shape == "levels";
  const auto all = world->make_communicator("all", {}, options);
  std::vector<float> values(count);
  const Buffer buffer{values.data(), count, DataType::float32};
  barrier(*all);
  std::printf("ready\n");
  std::fflush(stdout);
  std::size_t wrong = 0;
  auto spent = Clock::duration::zero();
  for (int i = 0; calls == 0 || i < calls; ++i) {
    fill(values, world->rank());
    const auto begun = Clock::now();
    all_reduce(*all, buffer, Operation::sum);
    spent += Clock::now() - begun;
    wrong += wrong_in(values, world->size());
  }
  barrier(*all);
  std::printf("rank %d of %d: %zu wrong, %.1f ms a call\n", world->rank(), world->size(), wrong,
              std::chrono::duration<double, std::milli>(spent).count() / std::max(calls, 1));
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: collective_world_rank COUNT CALLS [levels|alike]\n");
    return 2;
  }
  try {
    return run(std::strtoull(argv[1], nullptr, 10), std::atoi(argv[2]), argc > 3 ? argv[3] : "");
  } catch (const Error& error) {
    std::printf("%s\n", render(error, "rank").c_str());
    return 3;
  }
}
