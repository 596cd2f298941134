// A communicator whose failures all ranks of its group hear of, whatever it is made of.
//
// What a call throws is announced to the other ranks, whose communicators are aborted with it; so all ranks
// of a group throw the first failure of any of them, also where the ranks have no connection
// of their own that would tell.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "collective/base/call_thread.h"
#include "collective/base/communicator.h"

namespace fleetrun::collective {

class WatchedCommunicator : public Communicator {
 public:
  /// `announce` tells the other ranks; `forget`: told() is not called any more from here on.
  WatchedCommunicator(std::unique_ptr<Communicator> inner, std::function<void(const Error&)> announce,
                      std::function<void()> forget);
  ~WatchedCommunicator() override;

  const Place& place() const noexcept override { return place_; }
  void run(const Call& call) override;
  std::unique_ptr<Work> start(const Call& call) override;
  void abort(const Error& why) noexcept override;

  /// Another rank has failed, or is lost. Threads: any. Does not wait.
  void told(const Error& why) noexcept;

 private:
  void make(const Call& call);

  const Place place_;
  const std::function<void(const Error&)> announce_;
  const std::function<void()> forget_;
  std::atomic<bool> is_over_ = false;  // announced, or told
  std::unique_ptr<Communicator> inner_;
  CallThread calls_;
};

}  // namespace fleetrun::collective
