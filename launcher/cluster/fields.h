// The fields of what messages and journals are made of, in the order of their bytes (runtime/base/codec).
// Included by the two .cc that encode.
#pragma once

#include <memory>

#include "launcher/cluster/messages.h"
#include "launcher/model/failure_fields.h"
#include "runtime/base/codec.h"

namespace fleetrun::launcher {

// A count of bytes that an item takes at least: what a list of them is checked against.
constexpr std::size_t kMinId = 5, kMinMember = 5 + 4 + 4 + 6 + 4 + 4 + 4 + 4 + 2 + 4 + 4,
                      kMinTakenOver = 4 + 5 + 6 + 6, kMinPast = 4 + 4 + 4 + 8,
                      kMinConfiguration = 8 + 4 + 5 + 4;

/// A list of structures, each of `min` bytes at least.
template <class Archive, class List>
void list(Archive& archive, List& values, std::size_t min) {
  archive.list(values, kMaxMembers, min, [&archive](auto& each) { archive(each); });
}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const PodOffer*) {
  const auto port = [&archive](auto& number) { archive(number); };
  archive(value.host);
  archive.list(value.trainers, kMaxPods, 2, port);
  archive.list(value.servers, kMaxPods, 2, port);
  archive.list(value.standbys, kMaxPods, 2, port);
  archive(value.rendezvous);
}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Configuration*) {
  archive(value.generation, value.attempt);
  archive.id(value.coordinator);
  archive.list(value.nodes, kMaxMembers, kMinId, [&archive](auto& node) { archive.id(node); });
}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const Member*) {
  archive.id(value.node);
  archive(value.name, value.pod, value.successor, value.offer, value.first_trainer, value.first_server);
}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const TakenOver*) {
  archive(value.rank);
  archive.id(value.node);
  archive(value.endpoint, value.first);
}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const World*) {
  archive(value.generation, value.attempt);
  archive.id(value.run);
  list(archive, value.members, kMinMember);
  list(archive, value.taken_over, kMinTakenOver);
}

/// Never null.
template <class Archive, class Value>
void fields(Archive& archive, Value& value, const std::shared_ptr<const World>*) {
  if constexpr (Archive::reads) {
    auto world = std::make_shared<World>();
    archive(*world);
    value = std::move(world);
  } else {
    archive(*value);
  }
}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const PastFailure*) {
  archive(value.record.kind, value.record.who, value.record.signature, value.record.ran,
          value.record.progress);
  codec::choice(archive, value.scope, 2);
  archive(value.host);
}

}  // namespace fleetrun::launcher
