// What a device cgroup forbids: needs root and a writable cgroup v1 `devices` hierarchy,
// and is left out elsewhere.
#include "launcher/host/find_devices.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

using namespace fleetrun::launcher;

TEST_CASE("a device that the cgroup forbids does not count, and is found without being opened") {
  const fleetrun::tests::TempDir root;
  std::filesystem::create_directories(root.path() / "dev");
  // Character device 195:N is NVIDIA's: opening these would fail here, where there is no such driver.
  const bool made = ::mknod(root.file("dev/nvidia0").c_str(), S_IFCHR | 0600, ::makedev(195, 0)) == 0 &&
                    ::mknod(root.file("dev/nvidia1").c_str(), S_IFCHR | 0600, ::makedev(195, 1)) == 0;
  const std::string cgroup = "/sys/fs/cgroup/devices/fleetrun-test-" + std::to_string(::getpid());
  if (!made || ::mkdir(cgroup.c_str(), 0700) != 0) {
    MESSAGE("left out: no device nodes or device cgroups can be made here");
    return;
  }
  constexpr int kMayNot = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    std::ofstream deny(cgroup + "/devices.deny"), join(cgroup + "/cgroup.procs");
    deny << "c 195:0 rwm" << std::flush;
    join << ::getpid() << std::flush;
    if (!deny || !join) ::_exit(kMayNot);
    const auto files = read_device_files(root.path());
    const auto visible = visible_devices({}, files).tokens;
    ::_exit(files.size() == 2 && !files[0].usable && files[1].usable && visible.size() == 1 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  ::rmdir(cgroup.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == kMayNot) {
    MESSAGE("left out: the device cgroup cannot be written to here");
    return;
  }
  CHECK(status == 0);
}
