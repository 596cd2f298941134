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

bool has_takeover(const Meeting& meeting) noexcept {
  return meeting.kind == Meeting::Kind::master && meeting.may_coordinate;
}

CoordinatorSettings coordinator_settings(const JobConfig& config) {
  const Meeting& meeting = config.meeting;
  CoordinatorSettings settings;
  settings.job_id = config.job_id;
  settings.version = FLEETRUN_VERSION;
  settings.nodes = meeting.nodes;
  settings.elastic = meeting.elastic;
  settings.in_place = meeting.elastic && config.mode == Mode::ps;
  settings.takeover = has_takeover(meeting);
  settings.durable = meeting.kind == Meeting::Kind::etcd;
  settings.restarts = restart_rules(config);
  settings.expected = meeting.addresses;
  if (meeting.join_timeout.count() > 0) settings.join_timeout = meeting.join_timeout;
  if (meeting.elastic_timeout.count() > 0) settings.elastic_timeout = meeting.elastic_timeout;
  settings.prepare_timeout = longest_grace(config) + kSweep;
  return settings;
}

MemberSettings member_settings(const JobConfig& config, const NodeSelf& self) {
  const Meeting& meeting = config.meeting;
  MemberSettings settings;
  settings.job_id = config.job_id;
  settings.version = FLEETRUN_VERSION;
  settings.node = self.node;
  settings.name = self.name;
  settings.pod = self.pod;
  settings.offer = self.offer;
  settings.wished_rank = meeting.node_rank;
  settings.takeover = has_takeover(meeting);
  if (meeting.join_timeout.count() > 0) settings.join_timeout = meeting.join_timeout;
  if (meeting.elastic_timeout.count() > 0) settings.elastic_timeout = meeting.elastic_timeout;
  return settings;
}

}  // namespace fleetrun::launcher
