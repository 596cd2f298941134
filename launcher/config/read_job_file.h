// A job file: several roles, each with its processes. `fleetrun job.toml`, `fleetrun job.json`.
//
//   max_restart = 2                      # any flag by its long name; a flag on the command line wins
//   log_dir = "log"
//
//   [[roles]]
//   name = "server"                      # the keys of a role: kRoleKeys in job_file.cc, fleetrun-jobfile(5)
//   kind = "server"
//   count = 2
//   script = "train.py"
//
//   [[roles]]
//   name = "trainer"
//   kind = "trainer"
//   script = "train.py"
//
// In JSON the same keys are in one object: {"log_dir": "log", "roles": [{"name": …}, …]}.
//
// Relative paths begin where fleetrun runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/model/job_file.h"

namespace fleetrun::launcher {

/// One key of a role, as people read it; `value` is written as that of a Setting.
struct RoleKey {
  std::string_view name, value, help;
  std::string_view details = {};
};

/// The key whose value is a table: {log = "…"}, {port = …} or {descriptor = true}.
constexpr std::string_view kReadyKey = "ready";

/// In the order of the manual.
std::vector<RoleKey> role_keys();

struct Setting;
/// Settings that have no place beside roles: the roles say that.
bool is_said_by_roles(const Setting& setting) noexcept;

/// Whether `script` names a job file: it ends in .json or .toml.
bool is_job_file(std::string_view script) noexcept;

/// Pure. `name` is the file's, for messages; its ending says which language it is.
/// Throws: Error(config) that names what is wrong and where (FILE:LINE for TOML, FILE: KEY.PATH for JSON).
JobFile parse_job_file(const std::string& text, const std::string& name);

/// Throws: Error(config) when it cannot be read, and as parse_job_file() does.
JobFile read_job_file(const std::string& path);

}  // namespace fleetrun::launcher
