// The flags of a subcommand, split from its other words. Pure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::cli {

struct CommandFlag {
  std::string_view name;   // "follow": --follow, and --fol_low as --fol-low
  char letter = 0;         // 'f': -f
  std::string_view value;  // what the usage writes for it; "": it takes none
  std::string_view help;
  bool many = false;  // it may be there several times
};

struct CommandArguments {
  std::map<std::string, std::string, std::less<>> flags;  // by name; "" for those without a value
  std::map<std::string, std::vector<std::string>, std::less<>>
      lists;                       // of flags that may be there several times
  std::vector<std::string> words;  // the others

  bool has(std::string_view name) const { return flags.find(name) != flags.end(); }
  std::optional<std::string> value(std::string_view name) const;
  std::vector<std::string> values(std::string_view name) const;
};

/// `--` ends the flags. Throws: Error(usage) for an unknown flag, one that is there twice, one without its
/// value or with one that it does not take; the hint names the command's help.
CommandArguments parse_command_arguments(std::string_view command, const std::vector<std::string>& arguments,
                                         std::span<const CommandFlag> known);

/// The value of a flag as a whole number. Throws: Error(usage) that names both.
std::optional<int> whole_number(const CommandArguments& words, std::string_view flag, int min);

/// The flags as lines of a help text.
std::string describe_flags(std::span<const CommandFlag> known);

}  // namespace fleetrun::cli
