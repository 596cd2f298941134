#include "cli/own_program.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "launcher/program.h"
#include "runtime/base/error.h"

namespace fleetrun::cli {

std::string find_own_program(const OwnProgram& program) {
  char own[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", own, sizeof own);
  const std::string directory =
      launcher::directory_of({own, static_cast<std::size_t>(length > 0 ? length : 0)});
  for (const std::string& place :
       {std::string("/"), std::string("/../libexec/fleetrun/"), "/../" + program.build_folder + "/"}) {
    const std::string path = directory + place + program.name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  throw Error(ErrorKind::spawn,
              program.name + ", which does what `" + program.command + "` does, is not beside fleetrun in " +
                  directory,
              "install fleetrun with " + program.part);
}

void execute_own_program(const OwnProgram& program, const std::string& path,
                         const std::vector<std::string>& arguments) {
  std::vector<char*> words{const_cast<char*>(program.name.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  ::execv(path.c_str(), words.data());
  throw Error(ErrorKind::spawn, path + " cannot be executed: " + std::strerror(errno),
              "install fleetrun again");
}

}  // namespace fleetrun::cli
