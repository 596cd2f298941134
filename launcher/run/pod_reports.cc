#include "launcher/run/pod_reports.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "runtime/base/text.h"

namespace fleetrun::launcher {

event::WorldBegan world_began(const World& world) {
  event::WorldBegan told;
  told.generation = world.generation;
  told.attempt = world.attempt;
  told.hash = world.hash();
  told.trainers = world.trainers();
  told.servers = world.servers();
  for (const Member& member : world.members) told.hosts.push_back(member.name);
  for (const Endpoint& server : world.server_endpoints()) told.server_endpoints.push_back(to_string(server));
  return told;
}

JobEvent news_event(NewsLevel level, const std::string& text) {
  if (level == NewsLevel::warning) return event::Warning{text};
  return event::News{text, level == NewsLevel::debug};
}

bool any_lives(const std::vector<pid_t>& pids) {
  return std::ranges::any_of(pids, [](pid_t pid) { return ::kill(pid, 0) == 0 || errno == EPERM; });
}

event::Warning log_dropped(const ProcessSpec& process, const LogFile& log, int error) {
  return {"what " + process.name + " writes to " + log.shown +
          " is dropped: " + std::generic_category().message(error)};
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

Explained explained_by(const Explanation& explanation, const Plan& plan, const JobHistory& history) {
  Explained explained;
  explained.index = explanation.index;
  explained.port_clash = explanation.port_clash;
  explained.record.kind = explanation.cause.kind;
  explained.record.who = plan.processes[explanation.index].name;
  explained.record.signature = explanation.cause.signature;
  if (const Ending* ending = history.ending_of(explanation.index))
    explained.record.ran = std::chrono::milliseconds((ending->at - ending->started_at) / 1'000'000);
  return explained;
}

event::Unkillable unkillable(const UnkillableFrame& frame) {
  std::string where = frame.where.empty() ? "" : ", waiting in " + frame.where;
  if (::kill(frame.pid, 0) != 0 && errno == EPERM) where = ", no permission: it is another user's now";
  if (frame.name.empty()) return {frame.pid, "hidden in /proc" + where};
  return {frame.pid, frame.name + " (state " + frame.state + where + ")"};
}

event::Warning left_running(const LeftRunningFrame& frame) {
  const std::string others = frame.others == 0 ? "" : " and " + std::to_string(frame.others) + " more";
  return {"killed what the job left running at its end: " + printable(join(frame.processes, ", "), 1000) +
          others + "; a script that starts processes in the background has to wait for them"};
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

std::vector<ReadySign> signs_here(const Plan& plan, const std::vector<LogFile>& logs, std::size_t role) {
  const Readiness& readiness = plan.roles[role].ready;
  const bool own_port = readiness.kind == Readiness::Kind::port && readiness.text.empty();
  std::vector<ReadySign> signs;
  for (const std::size_t i : processes_of(plan, role)) {
    ReadySign& sign = signs.emplace_back();
    sign.index = i;
    if (own_port) sign.endpoint = self_endpoint(plan.processes[i].identity);
    sign.log = logs[i].path;
    sign.log_start = static_cast<std::uint64_t>(logs[i].start);
  }
  return signs;
}

}  // namespace fleetrun::launcher
