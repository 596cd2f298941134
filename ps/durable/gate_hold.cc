#include "ps/durable/gate_hold.h"

#include "runtime/base/error.h"

namespace fleetrun::ps {

GateHold::GateHold(Gate& gate, std::chrono::milliseconds max) : gate_(gate), sequences_(gate.freeze()) {
  watch_ = std::jthread([this, max](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, max, [this] { return !held_; });
    if (!stop.stop_requested()) open();
  });
}

GateHold::~GateHold() {
  watch_.request_stop();
  const std::unique_lock lock(mutex_);
  open();
}

void GateHold::require_held() const {
  if (held_) return;
  throw Error(ErrorKind::timeout, "training went on before the save had begun: it took too long",
              "save again; where it happens again, see why a server answers late");
}

void GateHold::settle(const Gate::Sequences& upto, std::chrono::milliseconds patience) {
  {
    const std::unique_lock lock(mutex_);
    require_held();
  }
  gate_.settle(upto, patience);
}

void GateHold::open() {
  if (!held_) return;
  held_ = false;
  gate_.open();
  changed_.notify_all();
}

}  // namespace fleetrun::ps
