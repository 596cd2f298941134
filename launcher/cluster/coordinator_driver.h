// Runs a CoordinatorCore (launcher/cluster/coordinator_core.h): gives it messages and the time, and does what
// it says. Where its connections lead is its owner's business:
// the node that it is on, or the controller of a host list.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "launcher/cluster/coordinator_core.h"
#include "launcher/cluster/sealed_channel.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// What its owner does for it. `over` and `stepped_down` come last, in a turn of the loop of their own, and
/// the driver may be destroyed in them; in the others it may not.
struct CoordinatorHooks {
  std::function<void(const std::vector<ConnectionId>&, const SharedMessage&)> send;
  std::function<void(ConnectionId)> close;
  std::function<void(const Journal&)> publish;
  std::function<void(const ClusterEvent&)> event;
  std::function<void(const std::string& why)> stepped_down;
  std::function<void(const JobEnd&)> over;
};

class CoordinatorDriver {
 public:
  virtual ~CoordinatorDriver() = default;
  virtual void on_message(ConnectionId connection, const Message& message) = 0;
  virtual void on_closed(ConnectionId connection, Closing how) = 0;
  virtual void on_published(bool stored) = 0;
  virtual void leads_until(Instant when) = 0;
  virtual void stop(int signal) = 0;
  virtual void end(const JobEnd& end) = 0;
  virtual void depose(const std::string& why) = 0;
  virtual const CoordinatorCore& core() const noexcept = 0;
};

/// `channel`: of the connections that it makes itself, to tell somebody something once.
std::unique_ptr<CoordinatorDriver> drive(boost::asio::io_context& loop, const CoordinatorSettings& settings,
                                         std::optional<Journal> journal, const ChannelSettings& channel,
                                         CoordinatorHooks hooks);

}  // namespace fleetrun::launcher
