// Every setting of fleetrun, one row each: its flag and other spellings, its environment variables, its
// default, its unit, and what is said about it.
//
// Everything that names a flag is made from this table: the command line (cli/options), --help, completion,
// the FLAGS of fleetrun(1), fleetrun-environment(7), the keys of a job file and their JSON schema, and the
// LAUNCH INFO listing. A new flag is a new row, the line of a job_config_*.cc that reads it, and its test.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

enum class Group { processes, hosts, run, restart, watch, logs, accepted, others };

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
  /// What the help writes for it; "" for a flag without a value. It says what a job file and completion take:
  /// words in small letters are choices, N, PORT and SECONDS are numbers, FILE, PATH and DIR are paths, "X,…"
  /// is a list and "X=Y,…" a list of pairs.
  std::string_view value;
  Group group;
  From from;
  Kind kind;
  std::string_view help;  // one line: of --help, completion, the schema, and the first sentence of the manual
  std::string_view details = {};  // what the manual says after it: sentences, with `words` that stand out
  std::string_view implied = {};
};

/// In the order of the help text.
std::span<const Setting> settings() noexcept;

/// Flags that print something instead of starting a job.
std::span<const Setting> other_flags() noexcept;

/// The row of `key`; it must exist.
const Setting& setting(std::string_view key) noexcept;

struct GroupTitle {
  Group group;
  std::string_view text;
};

/// In the order of the help text.
std::span<const GroupTitle> group_titles() noexcept;

/// Every way to write the flag, with its dashes: "--devices", "--gpus", …
std::vector<std::string> spellings(const Setting& row);

/// The default as people read it; empty where there is none to show.
std::string shown_default(const Setting& row);

/// The words that `value` ("N|auto|gpu|cpu") lets one choose from: "auto", "gpu", "cpu".
std::vector<std::string> choices_of(std::string_view value);

}  // namespace fleetrun::launcher
