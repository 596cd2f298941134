#include "launcher/model/plan.h"

namespace fleetrun::launcher {

std::vector<std::size_t> roles_of(const Plan& plan) {
  std::vector<std::size_t> roles;
  for (const ProcessSpec& process : plan.processes) roles.push_back(process.role);
  return roles;
}

std::vector<std::size_t> processes_of(const Plan& plan, std::size_t role) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < plan.processes.size(); ++i) {
    if (plan.processes[i].role == role) indices.push_back(i);
  }
  return indices;
}

std::optional<std::size_t> standby_role(const std::vector<RolePlan>& roles) {
  for (std::size_t role = 0; role < roles.size(); ++role)
    if (roles[role].stands_by_for) return role;
  return std::nullopt;
}

}  // namespace fleetrun::launcher
