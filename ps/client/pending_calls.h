// One operation's calls, one per server that takes part.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ps/base/server_channel.h"
#include "ps/client/step_client.h"

namespace fleetrun::ps {

/// Threads: one at a time.
class PendingCalls : public Pending {
 public:
  /// `join` gets each server's answer, in rank order of those asked, on the thread that waits; `finish` runs
  /// after the last one.
  using Join = std::function<void(std::uint32_t server, Reader answer)>;

  /// `limit`: how long all of them may take, from the first on; 0 for ever.
  explicit PendingCalls(std::chrono::milliseconds limit = {})
      : endings_(std::make_shared<Endings>()), limit_(limit) {}
  ~PendingCalls() override;

  void start(Channel& channel, std::uint32_t server, const wire::Header& header, Message request);
  void on_answer(Join join, std::function<void()> finish = {});
  /// Calls `tell` each `interval` of waiting until it returns true: of calls without a limit, which wait for
  /// other trainers.
  void on_long_wait(std::chrono::milliseconds interval, std::function<bool()> tell);
  /// Returns after all calls; throws the first error without waiting for the others,
  /// Error(timeout) at the limit.
  void wait() override;

 private:
  struct Started {
    std::uint32_t server;
    std::unique_ptr<Call> call;
  };
  using Clock = std::chrono::steady_clock;
  bool wait_for_endings();
  [[noreturn]] void time_out() const;

  std::shared_ptr<Endings> endings_;  // shared with the channels, which tell it when a call has ended
  std::chrono::milliseconds limit_;
  Clock::time_point started_;
  std::string what_;  // the method
  std::vector<std::string> names_;
  std::vector<Started> calls_;
  Join join_;
  std::function<void()> finish_;
  std::chrono::milliseconds interval_{0};
  std::function<bool()> tell_;
  bool waited_ = false;
};

}  // namespace fleetrun::ps
