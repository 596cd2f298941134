// One operation's calls, one per server that takes part.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ps/channel.h"
#include "ps/client.h"

namespace fleetrun::ps {

/// Threads: one at a time.
class PendingCalls : public Pending {
 public:
  /// `join` gets each server's answer, in rank order of those asked, on the thread that waits; `finish` runs
  /// after the last one.
  using Join = std::function<void(std::uint32_t server, Reader answer)>;

  PendingCalls() : endings_(std::make_shared<Endings>()) {}
  ~PendingCalls() override;

  void start(Channel& channel, std::uint32_t server, const wire::Header& header, Message request);
  void on_answer(Join join, std::function<void()> finish = {});
  /// Returns after all calls; throws the first error without waiting for the others.
  void wait() override;

 private:
  struct Started {
    std::uint32_t server;
    std::unique_ptr<Call> call;
  };

  std::shared_ptr<Endings> endings_;  // shared with the channels, which tell it when a call has ended
  std::vector<Started> calls_;
  Join join_;
  std::function<void()> finish_;
  bool waited_ = false;
};

}  // namespace fleetrun::ps
