// A job file, read: several roles, each with its processes. launcher/config/read_job_file has its language.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/model/readiness_rule.h"
#include "launcher/model/restart_policy.h"

namespace fleetrun::launcher {

enum class RoleKind { plain, trainer, server };

struct JobFileRole {
  std::string name;
  RoleKind kind = RoleKind::plain;
  std::optional<int> count;       // as many as devices, or 1
  std::string script;             // or the command's program
  std::vector<std::string> args;  // of either
  bool is_command = false;        // executed directly, whatever its name
  std::map<std::string, std::string, std::less<>> environment;
  std::optional<std::vector<std::string>> devices;
  std::string cwd;  // empty: where fleetrun runs
  std::optional<RestartScope> restart;
  std::optional<std::chrono::milliseconds> grace;
  std::optional<int> stop_signal;
  std::optional<Readiness> ready;
  std::vector<std::string> after;  // names of roles
  std::optional<bool> serves;
  std::string where;  // "job.toml:12", for messages

  bool operator==(const JobFileRole&) const = default;
};

struct JobFileSetting {
  std::string text;   // as a flag would have it
  std::string where;  // "log_dir at job.toml:2"
  bool operator==(const JobFileSetting&) const = default;
};

struct JobFile {
  std::map<std::string, JobFileSetting, std::less<>> settings;  // by key of launcher/model/job_settings
  std::vector<JobFileRole> roles;                               // in the file's order

  bool operator==(const JobFile&) const = default;
};

}  // namespace fleetrun::launcher
