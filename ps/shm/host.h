// A server's end of shared memory with the trainers on its host: requests are read where the trainer made
// them, answers are made where the trainer reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ps/base/background_queue.h"
#include "ps/server/server.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

struct ShmHostOptions {
  /// For the messages of each direction of one trainer. Only what messages have touched is ever in memory.
  std::uint64_t segment_bytes = std::uint64_t{4} << 30;
  std::size_t max_trainers = 1024;
  /// Who was refused, and why.
  std::function<void(const std::string& peer, const std::string& why)> refused = [](auto&, auto&) {};
  /// The connection by which a trainer attended has ended, without a goodbye; empty tells the server.
  std::function<void(const wire::Header& attended)> lost = {};
};

/// Each trainer has threads of its own here: one that waits for its next request and as many as it keeps
/// busy, up to the number of cores. A request that waits for other trainers holds none.
class ShmHost {
 public:
  /// Borrows the server and the background queue.
  ShmHost(Server& server, BackgroundQueue& slow, ShmHostOptions options = {});
  ~ShmHost();
  ShmHost(const ShmHost&) = delete;
  ShmHost& operator=(const ShmHost&) = delete;

  /// Shares memory with who is at the other end of `socket`, which has proved the job's secret, if it is a
  /// process of this user's. Threads: any. Throws: Error.
  void admit(UniqueFd socket);
  /// Trainers that are connected.
  std::size_t trainers() const;
  /// No request is taken from now on; returns when those that were have been answered. The server must be
  /// closed before, so that nothing waits for trainers.
  void stop();
  /// No request is taken and none is answered from now on, and trainers see their connections end. stop()
  /// is still to be called.
  void cut_off();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetrun::ps
