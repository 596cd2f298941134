#include "ps/durable/write_barrier_hold.h"

#include "runtime/base/error.h"

namespace fleetrun::ps {

WriteBarrierHold::WriteBarrierHold(WriteBarrier& write_barrier, std::chrono::milliseconds max)
    : write_barrier_(write_barrier), sequences_(write_barrier.freeze()) {
  watch_ = std::jthread([this, max](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, max, [this] { return !held_; });
    if (!stop.stop_requested()) open();
  });
}

WriteBarrierHold::~WriteBarrierHold() {
  watch_.request_stop();
  const std::unique_lock lock(mutex_);
  open();
}

void WriteBarrierHold::require_held() const {
  if (held_) return;
  throw Error(ErrorKind::timeout, "training went on before the save had begun: it took too long",
              "save again; where it happens again, see why a server answers late");
}

void WriteBarrierHold::settle(const WriteBarrier::Sequences& upto, std::chrono::milliseconds patience) {
  {
    const std::unique_lock lock(mutex_);
    require_held();
  }
  write_barrier_.settle(upto, patience);
}

void WriteBarrierHold::open() {
  if (!held_) return;
  held_ = false;
  write_barrier_.open();
  changed_.notify_all();
}

}  // namespace fleetrun::ps
