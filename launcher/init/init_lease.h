// A job of several hosts lets the processes of each run until a time that its launcher puts off, again and
// again, while it hears the others. This holds them to it when the launcher cannot: it was stopped, or it is
// late.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

#include "launcher/init/init_protocol.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

class InitLease {
 public:
  enum class Due { nothing, stands, ends };

  InitLease();

  /// Readable when something may be due.
  int timer() const noexcept { return timer_.value(); }
  /// True where this lets go on what stood still.
  bool renew(const LeaseFrame& lease);
  /// What the lease asks for now; each is said once.
  Due due();
  /// Stops `processes`, those that stand still already excepted. True at the first call.
  bool stand_still(const std::vector<pid_t>& processes);

 private:
  void arm(std::int64_t when) const;
  bool go_on();

  UniqueFd timer_;
  LeaseFrame lease_;
  std::set<pid_t> stopped_;
  bool still_ = false;
};

}  // namespace fleetrun::launcher
