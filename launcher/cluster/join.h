// How a supervisor gets its part in a job of several hosts.
#pragma once

#include <memory>

#include "launcher/model/job_config.h"
#include "launcher/model/membership.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun {
class Environ;
}

namespace fleetrun::launcher {

/// Joins the job that `config.rendezvous` describes, on `loop`; where it falls to this host, coordinates it
/// too. on_world, or on_job_over with the reason, comes within config.rendezvous.join_timeout.
/// Throws: Error(host|config) for an address that cannot be used, a secret that is missing or not safe.
std::unique_ptr<Membership> join_job(boost::asio::io_context& loop, const JobConfig& config,
                                     const Environ& environment, const NodeSelf& self,
                                     MembershipListener& listener);

}  // namespace fleetrun::launcher
