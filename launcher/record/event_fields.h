// The fields of a job's events, in the order of their bytes (runtime/base/codec).
#pragma once

#include <type_traits>

#include "launcher/model/failure_fields.h"
#include "launcher/model/job_event.h"
#include "runtime/base/codec.h"

namespace fleetrun {

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const ExitReason*) {
  codec::choice(archive, value.kind, 1);
  archive(value.code, value.core_dumped);
}

}  // namespace fleetrun

namespace fleetrun::launcher {

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Cause*) {
  archive(value.kind, value.text, value.detail, value.signature, value.hint, value.block);
}

}  // namespace fleetrun::launcher

namespace fleetrun::launcher::event {

template <class Archive, class Value, class Event>
requires std::is_empty_v<Event>
void fields(Archive&, Value&, const Event*) {}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Contained*) {
  archive(value.level, value.cgroup, value.why_not_more, value.init_pid);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const AttemptBegan*) {
  archive(value.attempt);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const ProcessStarted*) {
  archive(value.index, value.pid, value.attempt, value.at);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const ProcessExited*) {
  archive(value.index, value.pid, value.attempt, value.reason, value.asked, value.at, value.max_rss_kib);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const ProcessNotStarted*) {
  archive(value.index, value.attempt, value.stage, value.error);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const GenerationBegan::Replaced*) {
  archive(value.rank, value.lost, value.by);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const GenerationBegan*) {
  archive(value.generation, value.step, value.seats, value.newcomers, value.replaced);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const RoleReady*) {
  archive(value.role);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const StopBegan*) {
  archive(value.why, value.waiting_for);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const GraceElapsed*) {
  archive(value.still_alive);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const FailureExplained*) {
  archive(value.index, value.attempt, value.cause);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const RestartDecided*) {
  codec::choice(archive, value.scope, 2);
  archive(value.index, value.next_attempt, value.backoff, value.why);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const GaveUp*) {
  archive(value.why);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const SignalReceived*) {
  archive(value.number, value.again);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const SignalForwarded*) {
  archive(value.number);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const HangFound*) {
  archive(value.silent, value.report, value.culprits, value.why);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Injected*) {
  archive(value.what, value.index, value.signal);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Unkillable*) {
  archive(value.pid, value.why);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const LogsTruncated*) {
  archive(value.index, value.bytes, value.error);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Warning*) {
  archive(value.text);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const ServersMove*) {
  archive(value.from, value.to, value.moved, value.of, value.done, value.took_ms);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const WorldBegan*) {
  archive(value.generation, value.attempt, value.trainers, value.servers, value.hosts, value.hash,
          value.server_endpoints);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const WorldEnded*) {
  archive(value.why, value.at_once);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const PodStands*) {
  archive(value.still);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const News*) {
  archive(value.text, value.detail);
}
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const JobEnded*) {
  archive(value.exit_status);
}

}  // namespace fleetrun::launcher::event
