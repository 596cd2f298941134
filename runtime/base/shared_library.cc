#include "runtime/base/shared_library.h"

#include <limits.h>
#include <unistd.h>

namespace fleetrun {

void* open_library(const char* name) noexcept {
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  if (void* found = ::dlopen(name, kFlags)) return found;
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, size < 0 ? 0 : static_cast<std::size_t>(size));
  const std::string beside = program.substr(0, program.rfind('/') + 1) + name;
  void* found = beside.starts_with('/') && ::access(beside.c_str(), R_OK) == 0
                    ? ::dlopen(beside.c_str(), kFlags)
                    : nullptr;
  return found ? found : ::dlopen(name, kFlags);  // whose error is the one to tell
}

}  // namespace fleetrun
