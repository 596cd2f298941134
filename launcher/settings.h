// Every setting of fleetrun, one row each: its flag and other spellings, its environment variable, its
// default, its unit.
//
// The command line (cli/options) is built from this table, launcher/job_config reads values by it, and the
// LAUNCH INFO listing shows it. A new flag is a new row.
#pragma once

#include <span>
#include <string_view>

namespace fleetrun::launcher {

enum class Group { processes, hosts, restart, logs, run, accepted };

struct Setting {
  std::string_view key;       // as listed, in flags and in messages: "server_num"
  std::string_view aliases;   // other flags for the same setting, separated by blanks
  std::string_view variable;  // environment variable, or ""
  std::string_view initial;   // default as Python would show it: "None", "", "1"
  std::string_view value;     // what the help writes for it; "" for a flag without a value
  Group group;
  std::string_view help;
  bool ours;  // not one of Paddle's: listed after them
};

/// In the order of the help text.
std::span<const Setting> settings() noexcept;

/// The row of `key`; it must exist.
const Setting& setting(std::string_view key) noexcept;

}  // namespace fleetrun::launcher
