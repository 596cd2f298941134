// Sees that a rank of a group in shared memory has died, and fails the group with its name.
//
// A thread waits for the ends of the connections between rank 0 and the others, and for the ends of the
// processes behind them: a connection may live on in a child that they have forked.
// A rank that leaves says so first.
#pragma once

#include <thread>
#include <vector>

#include "collective/cpu/shared_group.h"
#include "collective/cpu/shared_rendezvous.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::collective {

class SharedWatch {
 public:
  /// Throws: Error(host).
  SharedWatch(SharedGroup& group, std::vector<SharedPeer> peers);
  /// Says goodbye and ends.
  ~SharedWatch();

 private:
  struct Watched {
    SharedPeer peer;
    UniqueFd process;  // none where it cannot be had
    bool is_gone = false;
  };
  void work() noexcept;
  void see_end(Watched& watched) noexcept;

  SharedGroup* group_;
  std::vector<Watched> watched_;
  UniqueFd stop_;
  std::thread thread_;
};

}  // namespace fleetrun::collective
