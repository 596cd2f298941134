#include "cli/package_program.h"

#include "cli/own_program.h"
#include "launcher/host/find_program.h"
#include "launcher/host/own_process.h"
#include "launcher/model/job_config.h"
#include "runtime/base/error.h"

namespace fleetrun::cli {

void execute_package_program(const std::string& command, const std::string& folder,
                             const std::optional<std::string>& python, std::vector<std::string> arguments,
                             const Environ& environment) {
  launcher::JobConfig config;
  config.script = folder;
  config.script_kind = launcher::ScriptKind::module;  // the interpreter is wanted, and there is no file yet
  config.python = python;
  const std::string directory = launcher::directory_of(launcher::own_program());
  auto found = launcher::find_program(config, environment, directory);
  if (auto* refusal = std::get_if<launcher::ProgramRefusal>(&found)) throw Error(std::move(refusal->error));
  const std::string interpreter = std::get<launcher::Program>(found).interpreter;
  const std::string compat = launcher::find_compat_directory(interpreter, directory, environment);
  arguments.insert(arguments.begin(), launcher::directory_of(compat) + "/" + folder + "/__main__.py");
  execute_own_program({interpreter, command, "its Python package"}, interpreter, arguments);
}

}  // namespace fleetrun::cli
