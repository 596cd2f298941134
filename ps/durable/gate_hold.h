// A server's gate, frozen for a cut: it opens when this goes, and by itself when whoever froze it does not
// come back in time, so that no trainer waits for a saver that has died.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "ps/durable/gate.h"

namespace fleetrun::ps {

/// Threads: one at a time.
class GateHold {
 public:
  /// Freezes; waits while another cut holds the gate. `gate` outlives this.
  GateHold(Gate& gate, std::chrono::milliseconds max);
  ~GateHold();
  GateHold(const GateHold&) = delete;
  GateHold& operator=(const GateHold&) = delete;

  /// How far each client's changes had come.
  const Gate::Sequences& sequences() const noexcept { return sequences_; }
  /// As Gate::settle(). Throws: Error(timeout), also when the gate has opened by itself.
  void settle(const Gate::Sequences& upto, std::chrono::milliseconds patience);
  /// Begins the cut: calls `begin` while nothing changes, then opens the gate.
  /// Throws: Error(timeout) when it has opened by itself.
  template <class Begin>
  auto cut(Begin begin) {
    const std::unique_lock lock(mutex_);
    require_held();
    auto out = begin();
    open();
    return out;
  }

 private:
  void require_held() const;
  void open();

  Gate& gate_;
  Gate::Sequences sequences_;
  std::mutex mutex_;  // guards held_
  std::condition_variable_any changed_;
  bool held_ = true;
  std::jthread watch_;
};

}  // namespace fleetrun::ps
