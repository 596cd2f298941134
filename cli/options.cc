// CLI11 reads the flags that launcher/settings lists. It stops at the first word that is not one of them
// (prefix_command), which is the script or an unknown flag.
#include "cli/options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>

#include "launcher/settings.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

/// "--log-dir=a-b" → "--log_dir=a-b". A flag whose value may be left out gets it written out.
std::string normalized(const std::string& argument) {
  if (!argument.starts_with("--")) return argument;
  std::string text = argument;
  const std::size_t equals = std::min(text.find('='), text.size());
  std::replace(text.begin() + 2, text.begin() + static_cast<std::ptrdiff_t>(equals), '-', '_');
  if (text == "--dry_run") return "--dry_run=text";
  return text;
}

std::string flag_name(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

[[noreturn]] void refuse_unknown(const std::string& flag) {
  std::vector<std::string> known = {"help", "version"};
  for (const launcher::Setting& row : launcher::settings()) {
    known.emplace_back(row.key);
    for (std::string& alias : split(row.aliases, ' ')) known.push_back(std::move(alias));
  }
  const std::string written = flag_name(flag);
  const std::string name =
      normalized(written).substr(std::min<std::size_t>(written.size(), written.starts_with("--") ? 2 : 1));
  const auto meant = nearest(name, known);
  throw Error(ErrorKind::usage, "unknown flag " + printable(written),
              meant ? "did you mean --" + *meant + "?"
                    : "fleetrun --help lists the flags; the script's own flags come after the script");
}

/// What CLI11 found wrong, in our words.
[[noreturn]] void refuse_parse(const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  std::map<std::string, int> times;
  for (const std::string& argument : arguments) {
    if (argument.starts_with("--") && ++times[flag_name(argument)] == 2)
      throw Error(ErrorKind::usage, flag_name(argument) + " is given twice", "give it once");
  }
  throw Error(ErrorKind::usage, error.what(), "fleetrun --help lists the flags and their values");
}

/// How each setting was spelled, for messages about its value.
void remember_spelling(const std::vector<std::string>& arguments, std::size_t flags_end,
                       launcher::Options& options) {
  std::map<std::string, std::string> key_of;
  for (const launcher::Setting& row : launcher::settings()) {
    key_of["--" + std::string(row.key)] = row.key;
    for (const std::string& alias : split(row.aliases, ' ')) key_of["--" + alias] = row.key;
  }
  for (std::size_t i = 0; i < flags_end; ++i) {
    const auto key = key_of.find(flag_name(normalized(arguments[i])));
    if (key != key_of.end()) options.spelled.emplace(key->second, flag_name(arguments[i]));
  }
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  CommandLine line;
  CLI::App app;
  app.prefix_command();
  app.set_help_flag();
  app.add_flag("-h,--help", line.help);
  app.add_flag("--version", line.version);
  std::map<std::string_view, std::string> values;
  for (const launcher::Setting& row : launcher::settings()) {
    std::string names = "--" + std::string(row.key);
    for (const std::string& alias : split(row.aliases, ' ')) names.append(",--").append(alias);
    app.add_option(names, values[row.key]);
  }

  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    words.push_back(normalized(argument));
    // CLI11 takes the next word as the value of "--flag="; written apart, the empty value stays one.
    if (words.back().starts_with("--") && words.back().find('=') == words.back().size() - 1) {
      words.back().pop_back();
      words.emplace_back();
    }
  }
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 takes words from the end
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    refuse_parse(error, words);
  }
  if (line.help || line.version) return line;

  const std::size_t flags_end = arguments.size() - app.remaining_size();
  for (const launcher::Setting& row : launcher::settings()) {
    if (app.get_option("--" + std::string(row.key))->count() > 0)
      line.options.values.emplace(row.key, std::move(values[row.key]));
  }
  remember_spelling(arguments, flags_end, line.options);
  if (flags_end == arguments.size()) return line;
  if (arguments[flags_end].starts_with("-")) refuse_unknown(arguments[flags_end]);
  line.options.script = arguments[flags_end];
  line.options.script_args.assign(arguments.begin() + static_cast<std::ptrdiff_t>(flags_end) + 1,
                                  arguments.end());
  return line;
}

}  // namespace fleetrun::cli
