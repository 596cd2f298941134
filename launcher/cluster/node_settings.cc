#include "launcher/cluster/node_settings.h"

#include <algorithm>

#include "runtime/base/version.h"

namespace fleetrun::launcher {
namespace {

constexpr std::chrono::seconds kSweep{
    30};  // for a pod to be ready again, beyond the time that its processes have to end

std::chrono::milliseconds longest_grace(const JobConfig& config) {
  std::chrono::milliseconds longest = config.grace.all;
  for (const auto& [role, grace] : config.grace.roles) longest = std::max(longest, grace);
  return longest;
}

}  // namespace

std::chrono::milliseconds lost_after(const JobConfig& config) {
  const Rendezvous& rendezvous = config.rendezvous;
  if (rendezvous.lost_after) return *rendezvous.lost_after;
  const bool goes_on = rendezvous.elastic || restart_rules(config).any();
  return goes_on ? kQuiet : std::max(kQuiet, rendezvous.join_timeout);
}

bool has_takeover(const Rendezvous& rendezvous) noexcept {
  return rendezvous.kind == Rendezvous::Kind::master && rendezvous.may_coordinate;
}

CoordinatorSettings coordinator_settings(const JobConfig& config) {
  const Rendezvous& rendezvous = config.rendezvous;
  CoordinatorSettings settings;
  settings.job_id = config.job_id;
  settings.version = FLEETRUN_VERSION;
  settings.nodes = rendezvous.nodes;
  settings.elastic = rendezvous.elastic;
  settings.in_place = rendezvous.elastic && config.mode == Mode::ps;
  settings.takeover = has_takeover(rendezvous);
  settings.durable = rendezvous.kind == Rendezvous::Kind::etcd;
  settings.restarts = restart_rules(config);
  settings.lost_after = lost_after(config);
  settings.expected = rendezvous.addresses;
  if (rendezvous.join_timeout.count() > 0) settings.join_timeout = rendezvous.join_timeout;
  if (rendezvous.elastic_timeout.count() > 0) settings.elastic_timeout = rendezvous.elastic_timeout;
  if (config.torchrun) settings.last_call = config.torchrun->last_call;
  settings.prepare_timeout = longest_grace(config) + kSweep;
  return settings;
}

MemberSettings member_settings(const JobConfig& config, const NodeSelf& self) {
  const Rendezvous& rendezvous = config.rendezvous;
  MemberSettings settings;
  settings.job_id = config.job_id;
  settings.version = FLEETRUN_VERSION;
  settings.node = self.node;
  settings.name = self.name;
  settings.pod = self.pod;
  settings.offer = self.offer;
  settings.program = self.program;
  settings.requested_rank = rendezvous.node_rank;
  settings.nodes = rendezvous.nodes;
  settings.takeover = has_takeover(rendezvous);
  settings.lost_after = lost_after(config);
  if (rendezvous.join_timeout.count() > 0) settings.join_timeout = rendezvous.join_timeout;
  if (rendezvous.elastic_timeout.count() > 0) settings.elastic_timeout = rendezvous.elastic_timeout;
  return settings;
}

}  // namespace fleetrun::launcher
