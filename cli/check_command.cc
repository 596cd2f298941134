#include "cli/check_command.h"

#include <algorithm>

#include "cli/own_program.h"
#include "launcher/host/find_program.h"
#include "launcher/host/own_process.h"
#include "launcher/model/job_config.h"
#include "runtime/base/error.h"

namespace fleetrun::cli {
namespace {

constexpr std::string_view kPython = "--python=";

}  // namespace

int run_check_command(const std::vector<std::string>& arguments, const Environ& environment) {
  launcher::JobConfig config;
  config.script = "check";
  config.script_kind = launcher::ScriptKind::module;  // the interpreter is wanted, and there is no file yet
  std::vector<std::string> words = arguments;
  const auto script = std::ranges::find_if(
      words, [](const std::string& word) { return word == "--" || !word.starts_with('-'); });
  const auto python_flag =
      std::find_if(words.begin(), script, [](const std::string& word) { return word.starts_with(kPython); });
  if (python_flag != script) {
    config.python = python_flag->substr(kPython.size());
    words.erase(python_flag);
  }
  const std::string directory = launcher::directory_of(launcher::own_program());
  auto found = launcher::find_program(config, environment, directory);
  if (auto* refusal = std::get_if<launcher::ProgramRefusal>(&found)) throw Error(std::move(refusal->error));
  const std::string python = std::get<launcher::Program>(found).interpreter;
  const std::string compat = launcher::find_compat_directory(python, directory, environment);
  words.insert(words.begin(), launcher::directory_of(compat) + "/_check/__main__.py");
  execute_own_program({python, "fleetrun check", "its Python package"}, python, words);
}

}  // namespace fleetrun::cli
