#include "dataset/tools/commands.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "dataset/tools/check_command.h"
#include "dataset/tools/convert_command.h"
#include "dataset/tools/head_command.h"
#include "dataset/tools/read_command.h"
#include "dataset/tools/refusal.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

struct ToolCommand {
  std::string_view name;
  std::string_view summary;  // one line of the help
  std::string (*help)();     // the whole text
  /// Returns the exit status. `arguments` are those after the name. Throws: Error.
  int (*run)(const std::vector<std::string>& arguments);
};

/// In the order of the help.
constexpr ToolCommand kCommands[] = {
    {"head", "show the first rows of files", head_help, run_head},
    {"check", "find malformed lines, and show statistics of the slots", check_help, run_check},
    {"convert", "write them as columns, which are read without parsing", convert_help, run_convert},
    {"read", "print delimited text as MultiSlot text, by a schema", read_help, run_read},
};

std::string general_help() {
  std::string text = "usage: fleetrun data COMMAND [ARGUMENT]…\n\nReads files of training data.\n\n";
  std::size_t longest = 0;
  for (const ToolCommand& command : kCommands) longest = std::max(longest, command.name.size());
  for (const ToolCommand& command : kCommands)
    text.append("  ")
        .append(command.name)
        .append(longest - command.name.size() + 3, ' ')
        .append(command.summary)
        .append("\n");
  return text + "\nfleetrun data COMMAND --help says more. fleetrun-data(1) is the manual.\n";
}

const ToolCommand& find_tool(const std::string& name) {
  const auto found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                  [&](const ToolCommand& command) { return command.name == name; });
  if (found != std::end(kCommands)) return *found;
  std::vector<std::string> names;
  for (const ToolCommand& command : kCommands) names.emplace_back(command.name);
  const auto meant = nearest(name, names);
  refuse_arguments("there is no command '" + printable(name) + "'" +
                   (meant ? "; did you mean " + *meant + "?" : ""));
}

bool is_help(const std::string& word) {
  return word == "--help" || word == "-h";
}

}  // namespace

bool print_text(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

int run_tool(const std::vector<std::string>& arguments) {
  if (arguments.empty() || is_help(arguments[0]) || (arguments[0] == "help" && arguments.size() == 1)) {
    print_text(general_help());
    return 0;
  }
  if (arguments[0] == "help") {
    print_text(find_tool(arguments[1]).help());
    return 0;
  }
  if (arguments[0].starts_with('-'))
    refuse_arguments("fleetrun data needs a command before " + printable(arguments[0]));
  const ToolCommand& command = find_tool(arguments[0]);
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  const auto flags_end = std::find(rest.begin(), rest.end(), "--");
  if (std::any_of(rest.begin(), flags_end, is_help)) {
    print_text(command.help());
    return 0;
  }
  return command.run(rest);
}

}  // namespace fleetrun::dataset
