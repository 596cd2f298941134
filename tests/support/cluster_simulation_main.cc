// cluster_simulation --seeds FIRST:LAST [--trace]
//
// Runs that many schedules of tests/support/cluster_simulator.h, prints how many in a second, and the first
// seed that violates something with its trace. Ends with 1 then.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/support/cluster_simulator.h"

namespace {

struct Range {
  std::uint64_t first = 1, last = 10'000;
};

bool parse(int argc, char** argv, Range& range, bool& traced) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--trace") {
      traced = true;
    } else if (word == "--seeds" && i + 1 < argc) {
      const std::string text = argv[++i];
      const std::size_t colon = text.find(':');
      range.first = std::strtoull(text.c_str(), nullptr, 10);
      range.last =
          colon == std::string::npos ? range.first : std::strtoull(text.c_str() + colon + 1, nullptr, 10);
    } else {
      return false;
    }
  }
  return range.first <= range.last;
}

void print_trace(std::uint64_t seed) {
  for (const std::string& line : fleetrun::testing::simulate_cluster(seed, true).trace)
    std::cout << line << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  Range range;
  bool traced = false;
  if (!parse(argc, argv, range, traced)) {
    std::cerr << "usage: cluster_simulation [--seeds FIRST:LAST] [--trace]\n";
    return 2;
  }
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t events = 0, worlds = 0, takeovers = 0, well = 0;
  for (std::uint64_t seed = range.first; seed <= range.last; ++seed) {
    const auto outcome = fleetrun::testing::simulate_cluster(seed);
    events += outcome.events;
    worlds += outcome.worlds;
    takeovers += outcome.takeovers;
    well += outcome.finished_well ? 1 : 0;
    if (outcome.violation.empty()) continue;
    print_trace(seed);
    std::cout << "seed " << seed << " violates: " << outcome.violation << '\n';
    return 1;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto schedules = static_cast<double>(range.last - range.first + 1);
  if (traced) print_trace(range.first);
  std::cout << schedules << " schedules, none violates anything: " << schedules / seconds << " schedules/s, "
            << static_cast<double>(events) / schedules << " events, "
            << static_cast<double>(worlds) / schedules << " worlds and "
            << static_cast<double>(takeovers) / schedules << " worlds of successors each, "
            << 100 * static_cast<double>(well) / schedules << " % ended well; " << seconds << " s\n";
  return 0;
}
