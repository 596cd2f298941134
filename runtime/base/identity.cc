#include "runtime/base/identity.h"

namespace fleetrun {

std::string_view to_string(Mode mode) noexcept {
  return mode == Mode::ps ? "ps" : "collective";
}

std::string_view to_string(Role role) noexcept {
  return role == Role::server ? "server" : "trainer";
}

const Endpoint& self_endpoint(const Identity& identity) {
  const auto& endpoints = identity.role == Role::server ? identity.servers : identity.trainers;
  return endpoints.at(static_cast<std::size_t>(identity.rank));
}

std::string process_name(Role role, int rank) {
  return std::string(to_string(role)) + " " + std::to_string(rank);
}

}  // namespace fleetrun
