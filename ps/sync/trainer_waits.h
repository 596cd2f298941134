// Who waits for other trainers, and in which call: what a server shows, and says when nobody can go on.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace fleetrun::ps {

struct TrainerWait {
  std::uint32_t trainer = 0;
  std::string call;
  std::chrono::milliseconds since{0};
};

struct TrainerWaits {
  /// By trainer, each in the call that it came to first.
  std::vector<TrainerWait> waits;
  /// For how long all trainers that others wait for have been waiting, each for another; 0 while one has not.
  std::chrono::milliseconds stuck{0};
};

/// "trainer 0 waits in barrier for 61 s, trainer 1 in all_reduce for 60 s"; empty when nobody waits.
std::string text_of(const std::vector<TrainerWait>& waits);

}  // namespace fleetrun::ps
