#include "runtime/base/identity.h"

namespace fleetrun {

std::string_view to_string(Mode mode) noexcept {
  constexpr std::string_view kNames[] = {"collective", "ps", "rpc", "own"};
  return kNames[static_cast<int>(mode)];
}

std::string_view to_string(Role role) noexcept {
  return role == Role::server ? "server" : "trainer";
}

const Endpoint& self_endpoint(const Identity& identity) {
  const auto& endpoints = identity.role == Role::server ? identity.servers : identity.trainers;
  return endpoints.at(static_cast<std::size_t>(identity.rank));
}

std::string role_name(const Identity& identity) {
  return identity.own_name.empty() ? std::string(to_string(identity.role)) : identity.own_name;
}

int role_size(const Identity& identity) noexcept {
  if (identity.mode == Mode::own) return identity.size;
  return static_cast<int>((identity.role == Role::server ? identity.servers : identity.trainers).size());
}

std::string process_name(const Identity& identity) {
  return role_name(identity) + " " + std::to_string(identity.rank);
}

std::string process_name(Role role, int rank) {
  return std::string(to_string(role)) + " " + std::to_string(rank);
}

}  // namespace fleetrun
