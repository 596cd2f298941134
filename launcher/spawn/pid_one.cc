#include "launcher/spawn/pid_one.h"

#include <signal.h>
#include <unistd.h>

#include <climits>
#include <exception>
#include <string>
#include <vector>

#include "launcher/host/find_program.h"
#include "launcher/spawn/process_spawner.h"

namespace fleetrun::launcher {

void leave_pid_one(char** argv) noexcept {
  if (::getpid() != 1) return;
  ::sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  try {
    char path[PATH_MAX];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0) return;
    const std::string own(path, static_cast<std::size_t>(length));
    const std::string init = find_init(directory_of(own));
    std::vector<char*> words = {const_cast<char*>("fleetrun-init"), const_cast<char*>("--"),
                                const_cast<char*>(own.c_str())};
    if (*argv != nullptr) ++argv;  // its name
    for (; *argv != nullptr; ++argv) words.push_back(*argv);
    words.push_back(nullptr);
    ::execv(init.c_str(), words.data());
  } catch (const std::exception&) {  // without fleetrun-init the job says what is missing
  }
}

}  // namespace fleetrun::launcher
