#include "launcher/run/pod_reports.h"

#include <set>

#include "launcher/init/init_protocol.h"

namespace fleetrun::launcher {

event::WorldBegan world_began(const World& world) {
  event::WorldBegan told;
  told.generation = world.generation;
  told.attempt = world.attempt;
  told.hash = world.hash();
  told.trainers = world.trainers();
  told.servers = world.servers();
  for (const Member& member : world.members) told.hosts.push_back(member.name);
  return told;
}

JobEvent news_event(NewsLevel level, const std::string& text) {
  if (level == NewsLevel::warning) return event::Warning{text};
  return event::News{text, level == NewsLevel::debug};
}

NodeFailure node_failure(const Explained& explained, const Report& report, const Plan& plan,
                         const JobHistory& history) {
  const ProcessSpec& process = plan.processes[explained.index];
  NodeFailure failure;
  failure.process = process.name;
  failure.exit_status = report.exit_status;
  failure.kind = explained.record.kind;
  failure.text = report.first ? report.first->cause.text : report.cause;
  failure.signature = explained.record.signature;
  if (const Ending* ending = history.ending_of(explained.index)) failure.at = ending->at;
  failure.ran_ms = explained.record.ran.count();
  failure.progress = explained.record.progress;
  failure.port_clash = explained.port_clash;
  failure.restarts = plan.roles[process.role].restart != RestartScope::nobody;
  return failure;
}

std::vector<ReadySign> signs_of_other_hosts(const Plan& plan, std::size_t role) {
  const Readiness& readiness = plan.roles[role].ready;
  std::vector<ReadySign> signs;
  if (plan.mode != Mode::ps || readiness.kind != Readiness::Kind::port || !readiness.text.empty())
    return signs;
  std::set<Endpoint> own;
  for (const std::size_t i : processes_of(plan, role)) own.insert(self_endpoint(plan.processes[i].identity));
  for (const Endpoint& server : plan.processes.front().identity.servers) {
    if (!own.contains(server))
      signs.push_back({.index = kEveryProcess, .endpoint = server, .log = {}, .descriptor = {}});
  }
  return signs;
}

}  // namespace fleetrun::launcher
