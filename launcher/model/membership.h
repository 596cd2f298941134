// A host's part in a job of several hosts, as its supervisor sees it: what it is told, and what it tells.
//
//   on_prepare  →  stop and sweep what runs, lease ports  →  ready
//   on_world    →  plan with everybody's endpoints, start →  running, then done or failing + failed
//   on_update   →  (in place) the processes go on and are told about the new world
//   on_lease    →  fleetrun-init holds the processes to it, whatever becomes of this launcher
//   on_fenced   →  kill what runs at once: the others may already go on without us. on_prepare may follow
//   on_job_over →  stop and end with its exit status
//
// Everything happens on one loop; no function of a listener is called from inside a function of Membership.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "launcher/model/job_notice.h"
#include "launcher/model/world.h"

namespace fleetrun::launcher {

enum class NewsLevel { debug, info, warning };

/// Until when the processes here may run without another word from the other hosts, by CLOCK_BOOTTIME: from
/// `stands` on they stand still, at `ends` they are killed. 0: there is no such time.
struct PodLease {
  std::chrono::microseconds stands{}, ends{};
};

class MembershipListener {
 public:
  virtual ~MembershipListener() = default;
  /// For people: "waiting for 1 of 4 hosts: no word from h7 for 41 s".
  virtual void on_news(NewsLevel level, const std::string& text) = 0;
  /// Where this node coordinates: for --on_event.
  virtual void on_notice(const JobNotice&) {}
  virtual void on_prepare(std::uint64_t generation, const std::string& why) = 0;
  virtual void on_world(const World& world, std::size_t node_rank) = 0;
  virtual void on_update(const World& world, std::size_t node_rank) = 0;
  virtual void on_lease(const PodLease& lease) = 0;
  virtual void on_fenced(const std::string& why) = 0;
  virtual void on_job_over(const JobEnd& end) = 0;
};

/// Reports about a generation that is not the current one any more are ignored.
class Membership {
 public:
  virtual ~Membership() = default;
  /// Nothing of an earlier generation runs here; `offer` is for this one.
  virtual void ready(std::uint64_t generation, const PodOffer& offer) = 0;
  virtual void running(std::uint64_t generation) = 0;
  /// At once, before anything is known: the others stop too.
  virtual void failing(std::uint64_t generation, const std::string& process) = 0;
  virtual void failed(std::uint64_t generation, const NodeFailure& failure) = 0;
  /// All that is waited for here has ended well. Servers stay until on_job_over.
  virtual void done(std::uint64_t generation) = 0;
  /// The user stops the job (`signal`), or, where the job can go on without this host, this host.
  virtual void stop(int signal) = 0;
  /// The job's time is up.
  virtual void timed_out() = 0;
  /// fleetrun-init has killed what ran here: its lease was over.
  virtual void lapsed() = 0;
  /// After on_job_over, or to give up: says goodbye, and where this node coordinates, waits (a few seconds at
  /// most) until everybody knows the end. Then calls `closed`.
  virtual void close(std::function<void()> closed) = 0;
};

/// What a node says of itself when it joins.
struct NodeSelf {
  std::string node, name, pod;
  PodOffer offer;
  std::uint64_t program = 0;  // the digest of what it runs; 0: not known
};

}  // namespace fleetrun::launcher
