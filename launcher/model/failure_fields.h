// The fields of failures, in the order of their bytes (runtime/base/codec): for messages between hosts,
// journals, and the record of a job.
#pragma once

#include "launcher/model/restart_policy.h"
#include "launcher/model/world.h"
#include "runtime/base/codec.h"

namespace fleetrun::launcher {

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const FailureKind*) {
  codec::choice(archive, value, static_cast<int>(kFailureKinds) - 1);
}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const NodeFailure*) {
  archive(value.process, value.exit_status, value.kind, value.text, value.signature, value.screen, value.at,
          value.ran_ms, value.progress, value.port_clash, value.restarts);
}

template <class Archive, class Value>
void fields(Archive& archive, Value& value, const JobEnd*) {
  archive(value.exit_status, value.why, value.node, value.failure);
}

}  // namespace fleetrun::launcher
