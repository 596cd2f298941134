// Between a host's membership in a job of several hosts and the supervisor of its pod: first the stage
// "meet", which blocks until there is a world, then the wire through which the supervisor is told and tells.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "launcher/model/job_config.h"
#include "launcher/model/membership.h"
#include "launcher/model/world.h"
#include "runtime/base/environ.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// The supervisor's end. Called from the loop.
class PodInWorld {
 public:
  virtual ~PodInWorld() = default;
  virtual void world_ends(const std::string& why, bool at_once) = 0;
  virtual void world_begins(const World& world, std::size_t node_rank) = 0;
  virtual void world_updated(const World& world, std::size_t node_rank) = 0;
  virtual void lease_renewed(const PodLease& lease) = 0;
  virtual void job_decided(const JobEnd& end) = 0;
  virtual void news(NewsLevel level, const std::string& text) = 0;
};

struct Met {
  World world;
  std::size_t node_rank = 0;
};
struct Interrupted {
  int signal = 0;      // that fleetrun got while it waited
  bool drain = false;  // and the job is to be started again later
};
/// JobEnd: the job was over, or never began, before this host had a world.
using Meet = std::variant<Met, JobEnd, Interrupted>;

class WorldLink final : private MembershipListener {
 public:
  using Tell = std::function<void(NewsLevel, const std::string&)>;
  using Notify = std::function<void(const JobNotice&)>;

  /// `tell` shows news to people while nobody is attached. `notify` is told what happens
  /// in the job, where this host coordinates it. `hangup_ignored`: SIGHUP does not end the waiting.
  WorldLink(const JobConfig& config, const Environ& environment, NodeSelf self, bool hangup_ignored,
            Tell tell, Notify notify);
  ~WorldLink() override;

  /// Joins, and waits for the first world.
  /// Throws: as join_job() does.
  Meet meet();

  boost::asio::io_context& loop();

  /// From here on `pod` is told; nullptr: nobody.
  void attach(PodInWorld* pod);

  // Of the pod; about the newest world.
  void ready(const PodOffer& offer);
  void running();
  void failing(const std::string& process);
  void failed(const NodeFailure& failure);
  void done();
  void stop(int signal);
  void timed_out();
  void lapsed();
  const PodLease& lease() const noexcept { return lease_; }

  /// Says goodbye; runs the loop until that is done, a few seconds at most.
  void close();

 private:
  void on_signal(int number);
  void on_news(NewsLevel level, const std::string& text) override;
  void on_notice(const JobNotice& notice) override { notify_(notice); }
  void on_prepare(std::uint64_t generation, const std::string& why) override;
  void on_world(const World& world, std::size_t node_rank) override;
  void on_update(const World& world, std::size_t node_rank) override;
  void on_lease(const PodLease& lease) override;
  void on_fenced(const std::string& why) override;
  void on_job_over(const JobEnd& end) override;

  struct Loop;
  const JobConfig& config_;
  const Environ& environment_;
  NodeSelf self_;
  bool hangup_ignored_;
  Tell tell_;
  Notify notify_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Membership> membership_;
  PodInWorld* pod_ = nullptr;
  std::uint64_t generation_ = 0;  // of the world that runs here, or ran last
  std::uint64_t prepared_ = 0;    // the generation for which on_prepare has come
  PodLease lease_;
  std::optional<Meet> met_;
};

using WarnOfName = std::function<void(const std::string&)>;

/// The address of this machine that faces `endpoint`, by its routes; nothing is sent.
/// Throws: Error(host) when there is no route, Error(config) when the name is not known.
std::string address_towards(const Endpoint& endpoint);

/// `config` with everything about the rendezvous settled that depends on this machine: its own address and
/// name, its rank in a list of addresses. Waits up to the join timeout for the name of the place to become
/// known, and then says so by `warn`, once. Throws: Error(config|host) when this host is not in the list,
/// or has no address, or the place is another host and the job has one.
JobConfig settle_rendezvous(JobConfig config, const WarnOfName& warn);

}  // namespace fleetrun::launcher
