// Who coordinates a job, where that is settled by something outside of it (etcd, under a lease). Without one,
// the launcher that can listen at the --master address does.
//
//   start → lead      this node coordinates, under a fence: a number that grows with every leader of the job
//         → follow    another one does, at that address; again whenever it changes
//   lead  → lost_lead another may lead already: this node forms no world any more
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/endpoint.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {

/// Told on the loop, never from inside a function of Discovery.
class DiscoveryListener {
 public:
  virtual ~DiscoveryListener() = default;
  /// `state`: what the leaders before published last (a journal, launcher/cluster/journal.h).
  virtual void lead(std::uint64_t fence, const std::optional<std::string>& state) = 0;
  /// Of a leader, again and again: nobody else leads before, on the clock that goes on while a host sleeps.
  virtual void leads_until(std::chrono::nanoseconds /*when*/) {}
  virtual void follow(const Endpoint& coordinator) = 0;
  virtual void lost_lead(const std::string& why) = 0;
  /// For people: what arbitrates does not answer. A leader's job goes on, and nothing can be published until
  /// it is back; before an election, none can be held, which is told again and again.
  virtual void in_doubt(const std::string& /*why*/) {}
  /// The answer to each publish, in their order. False: not stored, since another leads or may lead.
  virtual void on_published(bool stored) = 0;
  /// It cannot go on: nothing else is told afterwards.
  virtual void failed(const Error& error) = 0;
};

class Discovery {
 public:
  virtual ~Discovery() = default;
  /// Begins, and stands for election with `own`, where this node would coordinate.
  virtual void start(const Endpoint& own, DiscoveryListener& listener) = 0;
  /// Only of a leader. Stored under its fence, or not at all.
  virtual void publish(const std::string& state) = 0;
  /// The job is over: gives up what is held, and what was stored for this job.
  virtual void stop(bool job_over) = 0;
};

}  // namespace fleetrun::launcher
