// CLI11 reads the words; what it refuses is said in fleetrun's own way.
#include "cli/command_flags.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/language/translator.h"

namespace fleetrun::cli {
namespace {

[[noreturn]] void refuse(std::string_view command, const std::string& what) {
  throw Error(ErrorKind::usage, what, "fleetrun " + std::string(command) + " --help lists the flags");
}

/// "--log-dir=a-b" → "--log_dir=a-b", up to a "--".
std::vector<std::string> normalized(std::vector<std::string> words) {
  for (std::string& word : words) {
    if (word == "--") break;
    if (!word.starts_with("--")) continue;
    const auto end = word.begin() + static_cast<std::ptrdiff_t>(std::min(word.find('='), word.size()));
    std::replace(word.begin() + 2, end, '-', '_');
  }
  return words;
}

/// "-f,--follow", as CLI11 wants it.
std::string spellings(const CommandFlag& flag) {
  const std::string name = "--" + std::string(flag.name);
  return flag.letter == 0 ? name : std::string("-") + flag.letter + "," + name;
}

bool is_spelled(const CommandFlag& flag, const std::string& word) {
  const std::string name = "--" + std::string(flag.name);
  if (word == name || word.starts_with(name + "=")) return true;
  return flag.letter != 0 && word.size() > 1 && word[0] == '-' && word[1] == flag.letter;
}

/// The flag as it was written last: "--follow" or "-f".
std::string last_spelling(const CommandFlag& flag, const std::vector<std::string>& words) {
  const auto word = std::find_if(words.rbegin(), words.rend(),
                                 [&](const std::string& candidate) { return is_spelled(flag, candidate); });
  return word->starts_with("--") ? word->substr(0, word->find('=')) : word->substr(0, 2);
}

/// A flag that takes no value has one: CLI11 would read "-f1" as "-f" and a word.
void refuse_values_of_switches(std::string_view command, const std::vector<std::string>& words,
                               std::span<const CommandFlag> known) {
  for (const std::string& word : words) {
    if (word == "--") return;
    for (const CommandFlag& flag : known) {
      if (!flag.value.empty() || !is_spelled(flag, word)) continue;
      const std::string spelled = last_spelling(flag, {word});
      if (word != spelled) refuse(command, spelled + " takes no value");
    }
  }
}

}  // namespace

std::optional<std::string> CommandArguments::value(std::string_view name) const {
  const auto found = flags.find(name);
  if (found == flags.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> CommandArguments::values(std::string_view name) const {
  const auto found = lists.find(name);
  if (found == lists.end()) return {};
  return found->second;
}

CommandArguments parse_command_arguments(std::string_view command, const std::vector<std::string>& arguments,
                                         std::span<const CommandFlag> known) {
  const std::vector<std::string> words = normalized(arguments);
  refuse_values_of_switches(command, words, known);
  CommandArguments result;
  CLI::App parser;
  parser.set_help_flag();
  parser.add_option("words", result.words);
  std::map<const CommandFlag*, CLI::Option*> options;
  for (const CommandFlag& flag : known) {
    CLI::Option* option = flag.value.empty() ? parser.add_flag(spellings(flag))->disable_flag_override()
                                             : parser.add_option(spellings(flag))->expected(1);
    options[&flag] = option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  try {
    parser.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // it takes them from the end
  } catch (const CLI::ExtrasError&) {
    refuse(command, "unknown flag " + printable(parser.remaining().front()) + " of " + std::string(command));
  } catch (const CLI::ArgumentMismatch&) {  // the last word is a flag whose value is missing
    refuse(command, words.back() + " needs a value");
  }
  for (const auto& [flag, option] : options) {
    if (flag->many && option->count() > 0) result.lists.emplace(flag->name, option->results());
    if (flag->many) continue;
    if (option->count() > 1) refuse(command, last_spelling(*flag, words) + " is there twice");
    if (option->count() == 1)
      result.flags.emplace(flag->name, flag->value.empty() ? "" : option->results().front());
  }
  return result;
}

std::optional<int> whole_number(const CommandArguments& words, std::string_view flag, int min) {
  const auto text = words.value(flag);
  if (!text) return std::nullopt;
  const auto number = parse_integer(*text);
  if (!number || *number < min || *number > std::numeric_limits<int>::max())
    throw Error(ErrorKind::usage, "--" + std::string(flag) + " is '" + printable(*text) +
                                      "': a whole number from " + std::to_string(min) + " is needed");
  return static_cast<int>(*number);
}

std::string describe_flags(std::span<const CommandFlag> known) {
  std::string text;
  for (const CommandFlag& flag : known) {
    std::string head = flag.letter == 0 ? "      " : std::string("  -") + flag.letter + ", ";
    head.append("--").append(flag.name);
    if (!flag.value.empty()) head.append("=").append(flag.value);
    head.resize(std::max<std::size_t>(head.size() + 2, 26), ' ');
    text.append(head).append(translated(flag.help)).append("\n");
  }
  return text;
}

}  // namespace fleetrun::cli
