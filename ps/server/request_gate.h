// Where requests come to a server, so that it can be stopped between two of them. Closed, it keeps them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once.
class RequestGate {
 public:
  /// What came while it was closed: called with true when it opens, with false when it never will.
  using Parked = std::function<void(bool goes_on)>;

  class Pass;

  /// Returns when nobody is inside; false when somebody still is after `patience`: it is open again then.
  bool close(std::chrono::milliseconds patience);
  void open();
  /// It never opens again. Who waits in Pass(gate) goes away; what is parked stays so until answer().
  void end();
  /// After end(): what was parked, and what comes from now on, is called with false.
  void answer();

 private:
  enum class State { open, closed, ended, answered };
  bool enter();
  void park(Parked parked);
  bool enter_waiting();
  void leave();

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::open;
  std::size_t inside_ = 0;
  std::vector<Parked> parked_;
};

/// Somebody inside; false where the gate did not let them in.
class RequestGate::Pass {
 public:
  /// Where it is closed, what `park` returns is parked: made only then, since most requests find it open.
  template <typename Park>
  Pass(RequestGate& gate, const Park& park) : gate_(gate), is_inside_(gate.enter()) {
    if (!is_inside_) gate.park(park());
  }
  /// Waits where it is closed.
  explicit Pass(RequestGate& gate) : gate_(gate), is_inside_(gate.enter_waiting()) {}
  ~Pass() {
    if (is_inside_) gate_.leave();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  explicit operator bool() const noexcept { return is_inside_; }

 private:
  RequestGate& gate_;
  bool is_inside_;
};

}  // namespace fleetrun::ps
