// How far the files of a job have travelled (--ship), for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/remote/agent_channel.h"

namespace fleetrun::launcher::remote {

class Travels {
 public:
  explicit Travels(std::size_t hosts) : hosts_(hosts) {}

  /// What is to be said: a line every few seconds, else nothing. `ready`: hosts that have all of theirs.
  std::string moved(std::uint32_t host, const Progress& progress, std::size_t ready);
  /// At the end.
  std::string summary() const;

 private:
  Progress all() const noexcept;

  std::vector<Progress> hosts_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now(), told_ = began_;
};

}  // namespace fleetrun::launcher::remote
