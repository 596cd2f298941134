// The subcommands: `fleetrun NAME …` for a NAME in the table. Any other first word is a flag or the script.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

struct Command {
  /// shows: it ends by SIGPIPE, as usual, where its reader has left. launches: fleetrun's own flags and a
  /// script may follow the name.
  enum class Kind { shows, acts, launches };
  std::string_view name;
  std::string_view summary;  // one line of the help text; empty: not for people, and not shown
  /// Returns the exit status. `arguments` are those after the name. Throws: Error.
  int (*run)(const std::vector<std::string>& arguments, const Environ& environment);
  Kind kind;
};

/// Those for people, in the order of the help text.
std::span<const Command> commands() noexcept;

/// The command that `arguments` begin with, or nothing.
const Command* find_command(const std::vector<std::string>& arguments) noexcept;

/// The command that a mistyped `word` may mean.
std::optional<std::string> nearest_command(std::string_view word);

}  // namespace fleetrun::cli
