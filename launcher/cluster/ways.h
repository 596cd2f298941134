// Whether the processes of this host will reach those of the others: a firewall may open the port where
// launchers meet, and drop what goes to the ports of processes, which then wait in silence for minutes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launcher/model/world.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// Nothing is tried any more once it is destroyed.
class Ways {
 public:
  virtual ~Ways() = default;
};

/// Dials some of the ports that its processes will: those of the job's stores, and of the next host. Where
/// nobody listens yet, that is an answer, too; a port where the other launcher listens shows a firewall that
/// answers so. Calls `blocked` with a sentence, once, where a way is closed.
std::unique_ptr<Ways> try_ways(boost::asio::io_context& loop, const World& world, std::size_t node_rank,
                               std::function<void(const std::string&)> blocked);

}  // namespace fleetrun::launcher
