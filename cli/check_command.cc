#include "cli/check_command.h"

#include <algorithm>

#include "cli/package_program.h"

namespace fleetrun::cli {

int run_check_command(const std::vector<std::string>& arguments, const Environ& environment) {
  static constexpr std::string_view kPython = "--python=";
  std::vector<std::string> words = arguments;
  const auto script = std::ranges::find_if(
      words, [](const std::string& word) { return word == "--" || !word.starts_with('-'); });
  const auto python_flag =
      std::find_if(words.begin(), script, [](const std::string& word) { return word.starts_with(kPython); });
  std::optional<std::string> python;
  if (python_flag != script) {
    python = python_flag->substr(kPython.size());
    words.erase(python_flag);
  }
  execute_package_program("fleetrun check", "_check", python, std::move(words), environment);
}

}  // namespace fleetrun::cli
