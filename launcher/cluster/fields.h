// The fields of what messages and journals are made of, in the order of their bytes. Included by the two .cc
// that encode; `archive` is a codec::Writer with const values, or a codec::Reader.
#pragma once

#include <optional>

#include "launcher/cluster/codec.h"
#include "launcher/cluster/messages.h"

namespace fleetrun::launcher::codec {

// A count of bytes that an item takes at least: what a list of them is checked against.
constexpr std::size_t kMinId = 5, kMinMember = 5 + 4 + 4 + 6 + 4 + 4 + 4 + 2 + 4 + 4,
                      kMinPast = 4 + 4 + 4 + 8, kMinConfiguration = 8 + 4 + 5 + 4;

template <class Archive, class Value>
void whole(Archive& archive, Value& value, int max) {  // an enumeration
  using Bare = std::remove_const_t<Value>;
  auto number = static_cast<std::uint8_t>(value);
  archive.number(number);
  if (number > max) refuse("an unknown word");
  if constexpr (Archive::reads) value = static_cast<Bare>(number);
}

template <class Archive, class Number>
void maybe(Archive& archive, Number& value) {  // optional<int64>
  bool given = value.has_value();
  archive.flag(given);
  std::int64_t number = value.value_or(0);
  if (given) archive.number(number);
  if constexpr (Archive::reads) value = given ? std::optional(number) : std::nullopt;
}

template <class Archive, class Duration>
void time(Archive& archive, Duration& value) {
  std::int64_t count = value.count();
  archive.number(count);
  if constexpr (Archive::reads) value = Duration(static_cast<typename Duration::rep>(count));
}

template <class Archive, class Value>
void endpoint(Archive& archive, Value& value) {
  archive.text(value.host);
  archive.number(value.port);
}

template <class Archive, class Value>
void offer(Archive& archive, Value& value) {
  const auto port = [&archive](auto& number) { archive.number(number); };
  archive.text(value.host);
  archive.list(value.trainers, kMaxPods, 2, port);
  archive.list(value.servers, kMaxPods, 2, port);
  archive.number(value.rendezvous);
}

template <class Archive, class Value>
void configuration(Archive& archive, Value& value) {
  archive.number(value.generation);
  archive.number(value.attempt);
  archive.id(value.coordinator);
  archive.list(value.nodes, kMaxMembers, kMinId, [&archive](auto& node) { archive.id(node); });
}

template <class Archive, class Value>
void member(Archive& archive, Value& value) {
  archive.id(value.node);
  archive.text(value.name);
  archive.text(value.pod);
  endpoint(archive, value.successor);
  offer(archive, value.offer);
  archive.number(value.first_trainer);
  archive.number(value.first_server);
}

template <class Archive, class Value>
void world(Archive& archive, Value& value) {
  archive.number(value.generation);
  archive.number(value.attempt);
  archive.id(value.run);
  archive.list(value.members, kMaxMembers, kMinMember, [&archive](auto& each) { member(archive, each); });
}

template <class Archive, class Value>
void past(Archive& archive, Value& value) {
  whole(archive, value.record.kind, static_cast<int>(kFailureKinds) - 1);
  archive.text(value.record.who);
  archive.text(value.record.signature);
  time(archive, value.record.ran);
  maybe(archive, value.record.progress);
  whole(archive, value.scope, 2);
  archive.text(value.host);
}

template <class Archive, class Value>
void node_failure(Archive& archive, Value& value) {
  archive.text(value.process);
  archive.number(value.exit_status);
  whole(archive, value.kind, static_cast<int>(kFailureKinds) - 1);
  archive.text(value.text);
  archive.text(value.signature);
  archive.text(value.screen);
  archive.number(value.at);
  archive.number(value.ran_ms);
  maybe(archive, value.progress);
  archive.flag(value.port_clash);
  archive.flag(value.restarts);
}

template <class Archive, class Value>
void job_end(Archive& archive, Value& value) {
  archive.number(value.exit_status);
  archive.text(value.why);
  archive.text(value.node);
  bool failed = value.failure.has_value();
  archive.flag(failed);
  if constexpr (Archive::reads) {
    if (failed) node_failure(archive, value.failure.emplace());
  } else if (failed) {
    node_failure(archive, *value.failure);
  }
}

}  // namespace fleetrun::launcher::codec
