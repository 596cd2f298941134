// An attack, tried with all defences and without one.
#pragma once

#include <doctest/doctest.h>

#include <exception>
#include <utility>

#include "runtime/base/defences.h"

namespace fleetrun::tests {

/// `succeeds` tells whether the attacker got what it wanted: not while everything is defended, and for
/// certain without this defence (runtime/base/defences.h).
template <class Attack>
void stopped_only_by(const char* defence, Attack&& succeeds) {
  left_out = {};
  CHECK_MESSAGE(!succeeds(), "the attack succeeds");
  left_out = defence;
  CHECK_MESSAGE(succeeds(), "the attack fails without what is to stop it");
  left_out = {};
}

/// Whether `action` goes through without an exception.
template <class Action>
bool goes_through(Action&& action) {
  try {
    std::forward<Action>(action)();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace fleetrun::tests
