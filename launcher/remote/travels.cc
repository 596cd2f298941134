#include "launcher/remote/travels.h"

#include <algorithm>
#include <cstdio>

namespace fleetrun::launcher::remote {
namespace {

constexpr std::chrono::seconds kBetweenLines{3};

}  // namespace

Progress Travels::all() const noexcept {
  Progress sum;
  for (const Progress& one : hosts_) {
    sum.sent += one.sent;
    sum.total += one.total;
  }
  return sum;
}

std::string Travels::moved(std::uint32_t host, const Progress& progress, std::size_t ready) {
  hosts_.at(host) = progress;
  const auto now = std::chrono::steady_clock::now();
  if (now - told_ < kBetweenLines) return {};
  told_ = now;
  const Progress sum = all();
  return "Files travel: " + std::to_string(sum.sent >> 20) + " of " + std::to_string(sum.total >> 20) +
         " MiB sent, " + std::to_string(ready) + " of " + std::to_string(hosts_.size()) +
         " hosts have theirs";
}

std::string Travels::summary() const {
  const auto hosts =
      std::count_if(hosts_.begin(), hosts_.end(), [](const Progress& one) { return one.sent > 0; });
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - began_;
  char text[96];
  std::snprintf(text, sizeof text, "Files have travelled: %.1f MiB to %td hosts, after %.1f s",
                static_cast<double>(all().sent) / (1 << 20), hosts, time.count());
  return text;
}

}  // namespace fleetrun::launcher::remote
