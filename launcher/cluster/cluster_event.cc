#include "launcher/cluster/cluster_event.h"

#include "launcher/cluster/message_text.h"

namespace fleetrun::launcher {
namespace {

std::string text(const NodeJoined& event) {
  return event.name + " is here";
}

std::string text(const NodeLost& event) {
  return event.name + " was lost: " + event.why;
}

std::string text(const NodeRefused& event) {
  return event.name + " was refused: " + event.why;
}

std::string text(const NodeParked& event) {
  return event.name + " waits as a spare: " + event.why;
}

std::string text(const ProgramsDiffer& event) {
  return event.name + " runs another program than " + event.other +
         ": the contents of their scripts differ (copy the same one to both)";
}

std::string text(const WaitingForNodes& event) {
  return event.text;
}

std::string text(const ChangeBegun& event) {
  return "preparing epoch " + std::to_string(event.generation) + ": " + event.why;
}

std::string text(const WorldFormed& event) {
  const World& world = *event.world;
  return "epoch " + std::to_string(world.generation) + ": " + counted(world.members.size(), "host") + ", " +
         counted(static_cast<std::size_t>(world.trainers()), "trainer") +
         (world.servers() > 0 ? ", " + counted(static_cast<std::size_t>(world.servers()), "server") : "");
}

std::string text(const NodeFailed& event) {
  return event.failure.process + " on " + event.name + " " + event.failure.text;
}

std::string text(const RestartDecided& event) {
  return "starting again: " + event.why + (event.backoff.count() > 0 ? ", in " + shown(event.backoff) : "");
}

std::string text(const JobEnded& event) {
  return event.end.exit_status == 0 ? "the job is done" : "the job is over: " + event.end.why;
}

std::optional<JobNotice> notice(const WorldFormed& event) {
  if (event.world->generation != 1) return std::nullopt;
  return JobNotice{.kind = JobNotice::Kind::start, .why = text(event)};
}

std::optional<JobNotice> notice(const NodeLost& event) {
  return JobNotice{.kind = JobNotice::Kind::failure, .host = event.name, .why = text(event)};
}

std::optional<JobNotice> notice(const NodeFailed& event) {
  return JobNotice{.kind = JobNotice::Kind::failure,
                   .process = event.failure.process,
                   .host = event.name,
                   .cause = std::string(to_string(event.failure.kind)),
                   .why = event.failure.text,
                   .exit_status = event.failure.exit_status};
}

std::optional<JobNotice> notice(const RestartDecided& event) {
  return JobNotice{.kind = JobNotice::Kind::restart, .why = event.why, .backoff_ms = event.backoff.count()};
}

std::optional<JobNotice> notice(const JobEnded& event) {
  return JobNotice{.kind = JobNotice::Kind::end,
                   .host = event.end.node,
                   .why = event.end.why,
                   .exit_status = event.end.exit_status};
}

template <class Other>
std::optional<JobNotice> notice(const Other&) {
  return std::nullopt;
}

}  // namespace

std::optional<JobNotice> notice_of(const ClusterEvent& event) {
  return std::visit([](const auto& its) { return notice(its); }, event);
}

std::string to_string(const ClusterEvent& event) {
  return std::visit([](const auto& its) { return text(its); }, event);
}

}  // namespace fleetrun::launcher
