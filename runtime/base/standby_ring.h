// Which parameter server has the standby of which (--ps_replicas=1). Launchers and servers find it out alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fleetrun {

/// The server that holds the standby of `rank`: one of the next host in the order of `endpoints`, as many to
/// each as that has; on a single host the next server. Throws: Error(config) where there is no other.
std::uint32_t standby_of(std::uint32_t rank, const std::vector<std::string>& endpoints);

/// The same where servers move between the processes of one host, server s to process s mod N: never one of
/// the same process of two or more. Throws: likewise.
std::uint32_t standby_beside(std::uint32_t rank, std::size_t servers);

/// As standby_of() once servers of lost hosts are served elsewhere, `now`; they began at `first`. A server
/// keeps its holder until both are on one host, and then has the next in that order that is on another;
/// nullopt where none is.
std::optional<std::uint32_t> standby_now(std::uint32_t rank, const std::vector<std::string>& first,
                                         const std::vector<std::string>& now);

}  // namespace fleetrun
