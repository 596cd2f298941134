#include "cli/own_program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "launcher/host/find_program.h"
#include "launcher/host/own_process.h"
#include "runtime/base/error.h"

namespace fleetrun::cli {

std::string find_own_program(const OwnProgram& program) {
  const std::string directory = launcher::directory_of(launcher::own_program());
  for (const char* place : {"/", "/../libexec/fleetrun/"}) {
    const std::string path = directory + place + program.name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  throw Error(ErrorKind::spawn,
              program.name + ", which does what `" + program.command + "` does, is not beside fleetrun in " +
                  directory,
              "install fleetrun with " + program.part);
}

namespace {

/// The words of `arguments`, borrowed, as exec() wants them.
std::vector<char*> argv_of(const OwnProgram& program, const std::vector<std::string>& arguments) {
  std::vector<char*> words{const_cast<char*>(program.name.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  return words;
}

Error not_executed(const std::string& path, int error) {
  return Error(ErrorKind::spawn, path + " cannot be executed: " + std::strerror(error),
               "install fleetrun again");
}

}  // namespace

int run_own_program(const OwnProgram& program, const std::string& path,
                    const std::vector<std::string>& arguments, const Environ& environment) {
  std::vector<std::string> entries = environment.entries();
  std::vector<char*> variables;
  for (std::string& entry : entries) variables.push_back(entry.data());
  variables.push_back(nullptr);
  ::pid_t child = 0;
  const int error = ::posix_spawn(&child, path.c_str(), nullptr, nullptr, argv_of(program, arguments).data(),
                                  variables.data());
  if (error != 0) throw not_executed(path, error);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void execute_own_program(const OwnProgram& program, const std::string& path,
                         const std::vector<std::string>& arguments) {
  ::execv(path.c_str(), argv_of(program, arguments).data());
  throw not_executed(path, errno);
}

}  // namespace fleetrun::cli
