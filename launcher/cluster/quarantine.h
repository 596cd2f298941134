// Hosts that were blamed too often: each rests for a while, twice as long each time. Pure.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <string>

#include "launcher/cluster/messages.h"

namespace fleetrun::launcher {

struct QuarantineRules {
  int max_blames = 3;
  std::chrono::milliseconds window{600'000}, quarantine{10'000}, longest{600'000};
};

class Quarantine {
 public:
  explicit Quarantine(QuarantineRules rules) : rules_(rules) {}

  /// A failure or a loss of `host`, by its name.
  void blame(const std::string& host, Instant now);

  /// When `host` may take part again; in the past for most.
  Instant until(const std::string& host) const;

 private:
  struct Record {
    std::deque<Instant> blames;
    Instant until = Instant::min() / 2;
    int times = 0;
  };
  QuarantineRules rules_;
  std::map<std::string, Record> records_;
};

}  // namespace fleetrun::launcher
