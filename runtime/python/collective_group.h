// A communicator as Python has it: with the world that it lies in, and the thread on which the interpreter's main thread
// waits for its calls.
#pragma once

#include <memory>

#include "collective/communicator.h"
#include "collective/world.h"
#include "runtime/python/interruptible_thread.h"

namespace fleetrun::python {

struct Group {
  std::shared_ptr<collective::World> world;
  std::unique_ptr<collective::Communicator> communicator;  // goes before its world
  InterruptibleThread thread;

  /// For Ctrl-C: the call under way fails, here and elsewhere.
  void interrupt() const {
    communicator->abort(Error(ErrorKind::network, "this rank was interrupted in a collective call"));
  }
};
using GroupPtr = std::shared_ptr<Group>;

}  // namespace fleetrun::python
