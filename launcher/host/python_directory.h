// A directory of this job at the head of the children's PATH, in which `python` and `python3` are the job's
// interpreter.
//
// Pipe commands say `python`, and Debian has none; and a `python` that is there may be another one than the
// job's. The directory holds small shell scripts that execute the interpreter by its own path, because a
// symbolic link elsewhere would make it lose its virtual environment. Where scripts cannot be executed
// (noexec) it holds links after all.
#pragma once

#include <string>
#include <vector>

namespace fleetrun::launcher {

/// Which of `python` and `python3` do not mean `interpreter` when they are looked for in its own directory.
std::vector<std::string> python_names_to_provide(const std::string& interpreter);

struct PythonDirectory {
  std::string path;                // "LOG_DIR/.python-POD"; empty when none is needed
  std::vector<std::string> files;  // in it; who removes it has to know them
};

/// What will be made, before it is made. Pure but for a look at the interpreter's directory.
PythonDirectory plan_python_directory(const std::string& interpreter, const std::string& log_dir,
                                      const std::string& pod_name);

/// Makes it. Throws: Error(host) when it cannot.
void make_python_directory(const PythonDirectory& directory, const std::string& interpreter);

void remove_python_directory(const PythonDirectory& directory) noexcept;

}  // namespace fleetrun::launcher
