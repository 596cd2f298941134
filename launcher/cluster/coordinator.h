// The coordinator of a launcher that is not a node of its job: the controller of a host list, or of an
// engine's allocation. Listens, lets in the launchers that prove the job's secret,
// and runs a CoordinatorCore for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launcher/cluster/channel_server.h"
#include "launcher/cluster/coordinator_core.h"
#include "launcher/cluster/sealed_channel.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct CoordinatorPlace {
  std::vector<Endpoint> listen;  // addresses of this host, in digits; port 0: a free one
  ChannelSettings channel;
  ChannelLimits limits;
};

/// Called in turns of the loop of their own or from inside functions of the coordinator, which they may not
/// destroy; but on_over comes last, from the loop, and may.
class CoordinatorObserver {
 public:
  virtual ~CoordinatorObserver() = default;
  virtual void on_event(const ClusterEvent& event) = 0;
  /// For people: a launcher that was refused, strangers that were turned away.
  virtual void on_warning(const std::string& text, const std::string& hint) = 0;
  /// Everybody who could be told how the job ended has been.
  virtual void on_over(const JobEnd& end) = 0;
};

class Coordinator {
 public:
  virtual ~Coordinator() = default;
  /// Where it listens, in the order in which that was asked for.
  virtual const std::vector<Endpoint>& endpoints() const noexcept = 0;
  /// The user stops the job.
  virtual void stop(int signal) = 0;
  /// The job ends with `end` for everybody: a host cannot be reached at all, say.
  virtual void end(const JobEnd& end) = 0;
  /// Names of the expected hosts that have not come, and of those that came and are gone.
  virtual std::vector<std::string> missing() const = 0;
  /// The newest world; null: none was formed.
  virtual std::shared_ptr<const World> world() const noexcept = 0;
};

/// `observer` outlives the coordinator. `settings.own` becomes the first of the endpoints,
/// `settings.run` is drawn where it is empty.
/// Throws: Error(host) for an address that cannot be listened at.
std::unique_ptr<Coordinator> start_coordinator(boost::asio::io_context& loop, CoordinatorSettings settings,
                                               const CoordinatorPlace& place, CoordinatorObserver& observer);

/// 32 hexadecimal digits, for a node.
std::string draw_id();
/// Likewise, for a run: of two the one that began first, by the clocks of their hosts, is the lesser text.
std::string draw_run();

/// The clearest words for what happened at listening: "10.0.0.1:7777 is taken by another program".
/// Throws: always, Error(host).
[[noreturn]] void refuse_to_listen(const Endpoint& endpoint, int problem);

}  // namespace fleetrun::launcher
