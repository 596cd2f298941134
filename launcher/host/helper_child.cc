#include "launcher/host/helper_child.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/write_all.h"

namespace fleetrun::launcher {

void settle_child(pid_t parent) noexcept {
  sigset_t all, none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::getppid() != parent) ::_exit(0);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

UniqueFd memory_file(const std::string& bytes) {
  constexpr const char* kDoing = "passing on a file in memory";
  UniqueFd file(
      check_errno(::memfd_create("fleetrun", MFD_CLOEXEC), "memfd_create", kDoing, ErrorKind::spawn));
  check_errno(write_all(file.value(), bytes) ? 0 : -1, "write", kDoing, ErrorKind::spawn);
  check_errno(static_cast<int>(::lseek(file.value(), 0, SEEK_SET)), "lseek", kDoing, ErrorKind::spawn);
  return file;
}

}  // namespace fleetrun::launcher
