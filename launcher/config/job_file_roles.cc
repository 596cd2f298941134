#include "launcher/config/job_file_roles.h"

#include <algorithm>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

[[noreturn]] void refuse(const JobFileRole& role, const std::string& what, std::string hint = {}) {
  throw Error(ErrorKind::config, role.where + ": " + what, std::move(hint));
}

std::vector<std::string> names_of(const JobFile& file) {
  std::vector<std::string> names;
  for (const JobFileRole& role : file.roles) names.push_back(role.name);
  return names;
}

}  // namespace

std::vector<std::size_t> roles_before(const JobFile& file, const JobFileRole& role) {
  std::vector<std::size_t> indices;
  const std::vector<std::string> names = names_of(file);
  for (const std::string& name : role.after) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const auto meant = nearest(name, names);
      refuse(role, "role '" + role.name + "' comes after '" + printable(name) + "', which is not a role",
             meant ? "did you mean " + *meant + "?" : "the roles are " + join(names, ", "));
    }
    indices.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  for (std::size_t i = 0; role.kind == RoleKind::trainer && i < file.roles.size(); ++i) {
    if (file.roles[i].kind == RoleKind::server) indices.push_back(i);
  }
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

const JobFileRole* role_of_kind(const JobFile& file, RoleKind kind) {
  const JobFileRole* found = nullptr;
  for (const JobFileRole& role : file.roles) {
    if (role.kind != kind) continue;
    if (found && kind != RoleKind::plain)
      refuse(role,
             "roles '" + found->name + "' and '" + role.name +
                 "' are both of one kind, whose processes are one world",
             "leave kind out of one of them");
    if (!found) found = &role;
  }
  return found;
}

int count_of(const JobFileRole& role) {
  return role.count.value_or(role.devices ? static_cast<int>(role.devices->size()) : 1);
}

std::string script_path(const JobFileRole& role) {
  const bool searched = role.is_command && role.script.find('/') == std::string::npos;
  if (role.cwd.empty() || role.script.starts_with('/') || searched) return role.script;
  return role.cwd + "/" + role.script;
}

bool has_endpoints(const JobFileRole& role) {
  return role.kind == RoleKind::plain && role.ready && role.ready->kind == Readiness::Kind::port &&
         role.ready->text.empty();
}

std::vector<std::size_t> starting_order(const JobFile& file) {
  std::vector<std::size_t> order;
  const auto started = [&](std::size_t i) { return std::find(order.begin(), order.end(), i) != order.end(); };
  while (order.size() < file.roles.size()) {
    const std::size_t placed = order.size();
    for (std::size_t i = 0; i < file.roles.size(); ++i) {
      const std::vector<std::size_t> first = roles_before(file, file.roles[i]);
      if (started(i) || !std::all_of(first.begin(), first.end(), started)) continue;
      order.push_back(i);
      break;
    }
    if (order.size() > placed) continue;
    std::vector<std::string> waiting;
    for (std::size_t i = 0; i < file.roles.size(); ++i) {
      if (!started(i)) waiting.push_back(file.roles[i].name);
    }
    throw Error(ErrorKind::config, "roles wait for each other: " + join(waiting, ", "),
                "take one of their 'after' out");
  }
  return order;
}

void apply_job_file(const JobFile& file, Options& options) {
  if (!options.script_args.empty())
    throw Error(ErrorKind::usage,
                "there are arguments after the job file: " + printable(options.script_args.front()),
                "write flags before the file, and arguments of scripts into its roles");
  for (const char* key : {"server_num", "trainer_num", "servers", "trainers", "nproc_per_node", "devices",
                          "run_mode", "module", "no_python", "run_path"}) {
    const auto spelled = options.spelled.find(key);
    if (spelled != options.spelled.end())
      throw Error(ErrorKind::usage, spelled->second + " has no place beside a job file: its roles say that",
                  "leave it out, or change " + options.script.value_or("the file"));
  }
  std::optional<std::string> flag_grace;  // what the command line says wins over roles too
  if (const auto given = options.values.find("grace"); given != options.values.end())
    flag_grace = given->second;
  for (const auto& [key, setting] : file.settings) {
    if (options.values.emplace(key, setting.text).second) options.spelled.emplace(key, setting.where);
  }
  const JobFileRole* server = role_of_kind(file, RoleKind::server);
  const JobFileRole* trainer = role_of_kind(file, RoleKind::trainer);
  if (server && !trainer)
    throw Error(ErrorKind::config,
                server->where + ": role '" + server->name +
                    "' has no trainers to serve: there is no role of kind trainer",
                "give the role that trains kind = \"trainer\"");
  const auto say = [&](const char* key, const std::string& text, const JobFileRole& role) {
    options.values[key] = text;
    options.spelled[key] = role.name + " (" + role.where + ")";
  };
  if (server) say("server_num", std::to_string(count_of(*server)), *server);
  if (trainer) say(server ? "trainer_num" : "nproc_per_node", std::to_string(count_of(*trainer)), *trainer);
  if (trainer && trainer->devices && !server) say("devices", join(*trainer->devices, ","), *trainer);
  options.file = file;
  if (flag_grace && flag_grace->find('=') == std::string::npos) {
    for (JobFileRole& role : options.file->roles) role.grace.reset();
  }
}

}  // namespace fleetrun::launcher
