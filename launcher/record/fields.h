// The fields of a record's entries, in the order of their bytes (runtime/base/codec).
// Included by flight_record.cc alone.
#pragma once

#include <type_traits>

#include "launcher/model/failure_fields.h"
#include "launcher/record/event_fields.h"
#include "launcher/record/flight_record.h"
#include "runtime/base/codec.h"

namespace fleetrun {

/// Without what grows with the square of the job.
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Identity*) {
  codec::choice(archive, value.mode, 3);
  codec::choice(archive, value.role, 1);
  archive(value.own_name, value.rank, value.size, value.local_rank, value.local_size, value.hosts,
          value.devices, value.on_xpus, value.job_id, value.pod_name, value.log_dir);
}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Environ*) {
  auto values = value.values();
  archive(values);
  if constexpr (Archive::reads) {
    for (const auto& [name, text] : values) value.set(name, text);
  }
}

}  // namespace fleetrun

namespace fleetrun::launcher {

template <class Archive, class Value, class Event>
requires std::is_empty_v<Event>
void fields(Archive&, Value&, const Event*) {}

// What the reducer is told.

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const FailureRecord*) {
  archive(value.kind, value.who, value.signature, value.ran, value.progress);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Started*) {
  archive(value.index);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Exited*) {
  archive(value.index, value.reason);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const NotStarted*) {
  archive(value.index, value.stage, value.error);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const RoleReady*) {
  archive(value.role);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const ReadyTimeout*) {
  archive(value.role);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const GraceElapsed*) {
  archive(value.role);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Explained*) {
  archive(value.index, value.record, value.port_clash);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Swept*) {
  archive(value.index);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const BackoffElapsed*) {
  archive(value.index);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Hung*) {
  archive(value.indices);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const MemberSaid*) {
  archive(value.index);
  codec::choice(archive, value.what, 2);
  archive(value.generation, value.step);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const CountWanted*) {
  archive(value.role, value.count);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const StopAsked*) {
  archive(value.signal, value.drain);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const WorldEnds*) {
  archive(value.why, value.at_once);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const WorldBegins*) {
  archive(value.attempt);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const JobDecided*) {
  archive(value.why);
}

// The plan.

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Readiness*) {
  codec::choice(archive, value.kind, 3);
  archive(value.text);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const RolePlan*) {
  archive(value.name, value.serves);
  codec::choice(archive, value.restart, 2);
  archive(value.grace, value.stop_signal, value.ready, value.after, value.stands_by_for, value.wanted);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const RestartRules*) {
  for (auto& budget : value.budgets) archive(budget);
  archive(value.total, value.backoff, value.longest_backoff, value.healthy_after, value.same_failures);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const ProcessSpec*) {
  archive(value.role, value.name, value.identity, value.program, value.argv, value.environment, value.unset,
          value.cwd, value.log_name, value.log_alias, value.ports, value.own_ports, value.device_places,
          value.cpus, value.memory_nodes);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Plan*) {
  codec::choice(archive, value.mode, 3);
  archive(value.job_id, value.pod_name, value.log_dir, value.log_dir_shown, value.log_overwrite,
          value.has_secret, value.ready_timeout, value.timeout, value.restart, value.roles, value.processes,
          value.notes);
}

// The record.

/// Throws: Error(data) that names `version`, which wrote it.
[[noreturn]] void refuse_format(const std::string& version);

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const EventTime*) {
  archive(value.wall_ns, value.monotonic_ns);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Moment*) {
  archive(value.monotonic_ns, value.wall_ns);
}
/// The format comes first, and is asked before anything else is read.
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const RecordOpening*) {
  archive(value.format, value.version);
  if (value.format != kRecordFormat) refuse_format(value.version);
  archive(value.began, value.fleetrun_pid, value.seed, value.first_attempt, value.torchrun, value.command,
          value.plan);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Told*) {
  archive(value.time, value.event);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Decision*) {
  archive(value.event, value.actions);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const SignalSent*) {
  archive(value.index, value.number);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const LeftAlive*) {
  archive(value.pid);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const PlanMade*) {
  archive(value.plan);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Refusal*) {
  codec::choice(archive, value.kind, static_cast<int>(ErrorKind::data));
  archive(value.what, value.hint);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const RecordEnd*) {
  archive(value.ended, value.end, value.refusal, value.verdict, value.screen, value.last_lines, value.logs);
}

}  // namespace fleetrun::launcher
