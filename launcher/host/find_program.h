// What is run: the script with its interpreter, or a program of its own. A .py, .pyc, .pyw or .pyz, the path
// of a folder with a __main__.py, a .pyxes and a module (-m) run in Python; --no_python and --run_path say so
// against the name.
//
// The interpreter is --python, else the active virtual environment's ($VIRTUAL_ENV), else the one beside
// fleetrun unless that is a folder of all programs (/usr/bin), else python3 on PATH. Other programs are
// executed directly, found beside --python and on PATH.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/model/job_config.h"
#include "launcher/model/program.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// Looks at the file system. `fleetrun_directory` is where the running fleetrun lies.
std::variant<Program, ProgramRefusal> find_program(const JobConfig& config, const Environ& environ,
                                                   const std::string& fleetrun_directory);

/// The same for each role of a job file, in its order; for a job without one, of its script.
std::variant<std::vector<Program>, ProgramRefusal> find_programs(const JobConfig& config,
                                                                 const Environ& environ,
                                                                 const std::string& fleetrun_directory);

/// The directory that holds the modules of --compat=paddle, asked from `interpreter` itself.
/// Throws: Error(config) when that interpreter has no package fleetrun, Error(spawn) when it cannot be asked.
std::string find_compat_directory(const std::string& interpreter, const std::string& script_directory,
                                  const Environ& environ);

/// The absolute path of `name` as execvp() would find it; nullopt when there is no executable file.
std::optional<std::string> find_on_path(const std::string& name, const std::string& path);

/// The interpreter of the job, by the rules above. Throws: Error(spawn) where there is none.
std::string find_python(const JobConfig& config, const Environ& environ,
                        const std::string& fleetrun_directory);

/// Runs `argv` and returns its standard output, as far as it comes within half a minute. Its errors are not
/// shown. Throws: Error(spawn).
std::string output_of(std::vector<std::string> argv, const Environ& environment);

std::string directory_of(const std::string& path);
std::string absolute_path(const std::string& path);

}  // namespace fleetrun::launcher
