#include "runtime/base/close_from.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace fleetrun {
namespace {

/// Those that are open, and one that was while they were listed.
std::vector<int> open_descriptors() {
  std::vector<int> numbers;
  DIR* list = ::opendir("/proc/self/fd");
  if (list == nullptr) return numbers;
  while (const dirent* entry = ::readdir(list)) {
    if (entry->d_name[0] != '.') numbers.push_back(std::atoi(entry->d_name));
  }
  ::closedir(list);
  return numbers;
}

}  // namespace

void close_from(int first) noexcept {
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0) == 0) return;
  for (const int number : open_descriptors()) {
    if (number >= first) ::close(number);
  }
}

}  // namespace fleetrun
