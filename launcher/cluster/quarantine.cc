#include "launcher/cluster/quarantine.h"

#include <algorithm>

namespace fleetrun::launcher {

void Quarantine::blame(const std::string& host, Instant now) {
  Record& record = records_[host];
  while (!record.blames.empty() && now - record.blames.front() > rules_.window) record.blames.pop_front();
  record.blames.push_back(now);
  if (rules_.max_blames <= 0 || record.blames.size() < static_cast<std::size_t>(rules_.max_blames)) return;
  const int doublings = std::min(record.times++, 20);
  record.until = now + std::min(rules_.longest, rules_.quarantine * (1 << doublings));
  record.blames.clear();
}

Instant Quarantine::until(const std::string& host) const {
  const auto found = records_.find(host);
  return found == records_.end() ? Instant::min() / 2 : found->second.until;
}

}  // namespace fleetrun::launcher
