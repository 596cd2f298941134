// Communicators and options of collective training as Python gives them, for the bindings that use them.
#pragma once

#include <memory>
#include <vector>

#include "runtime/python/collective_group.h"
#include "runtime/trainer/collective_epoch.h"

namespace fleetrun::python {

using Groups = std::vector<GroupPtr>;

inline std::vector<collective::Communicator*> communicators_of(const Groups& groups) {
  std::vector<collective::Communicator*> communicators;
  for (const GroupPtr& group : groups) communicators.push_back(group->communicator.get());
  return communicators;
}

/// For Ctrl-C: calls under way fail, here and elsewhere.
inline void interrupt(const Groups& groups) {
  for (const GroupPtr& group : groups) group->interrupt();
}

}  // namespace fleetrun::python
