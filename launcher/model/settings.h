// Every setting of fleetrun, one row each: its flag and other spellings, its environment variables, its
// default, its unit.
//
// The command line (cli/options) is built from this table, launcher/config/make_job_config reads values by
// it, and the LAUNCH INFO listing shows it. A new flag is a new row, and a line that reads it in one of the
// job_config_*.cc.
#pragma once

#include <span>
#include <string_view>

namespace fleetrun::launcher {

enum class Group { processes, hosts, run, restart, watch, logs, accepted };

/// Whose users know the flag. Paddle's are always listed, the others when they are given; abbreviations are
/// understood for Paddle's and torchrun's, since their launchers do.
enum class From { paddle, torchrun, fleetrun };

enum class Kind {
  value,           // --flag VALUE, --flag=VALUE
  flag,            // --flag, --flag=BOOL
  optional_value,  // --flag (means `implied`), --flag=VALUE
  refused,         // takes a value, and is an error that says `implied`
};

struct Setting {
  std::string_view key;        // as listed, in flags and in messages: "server_num"
  std::string_view aliases;    // other flags for the same setting, separated by blanks: "gpus npus", "-m"
  std::string_view variables;  // environment variables, separated by blanks; the first one that is set counts
  std::string_view initial;    // default as Python would show it: "None", "", "1"
  std::string_view value;      // what the help writes for it; "" for a flag without a value
  Group group;
  std::string_view help;
  From from = From::fleetrun;
  Kind kind = Kind::value;
  std::string_view implied = {};
};

/// In the order of the help text.
std::span<const Setting> settings() noexcept;

/// The row of `key`; it must exist.
const Setting& setting(std::string_view key) noexcept;

}  // namespace fleetrun::launcher
