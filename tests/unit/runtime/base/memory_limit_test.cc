#include "runtime/base/memory_limit.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

using namespace fleetrun;

namespace {

/// A tree of files in place of /proc and /sys.
class Machine {
 public:
  void file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(directory_.file(name)).parent_path());
    directory_.write(name, text);
  }
  std::optional<std::uint64_t> limit() const { return cgroup_memory_limit(directory_.path()); }

 private:
  tests::TempDir directory_;
};

}  // namespace

TEST_CASE("memory limit: of version 2 the least of all levels counts") {
  Machine machine;
  machine.file("proc/self/cgroup", "0::/pod/job\n");
  CHECK_FALSE(machine.limit());
  machine.file("sys/fs/cgroup/pod/job/memory.max", "max\n");
  CHECK_FALSE(machine.limit());
  machine.file("sys/fs/cgroup/pod/memory.max", "3000000\n");
  CHECK(machine.limit() == 3'000'000);
  machine.file("sys/fs/cgroup/pod/job/memory.max", "2000000\n");
  CHECK(machine.limit() == 2'000'000);
  machine.file("sys/fs/cgroup/memory.max", "1000000\n");
  CHECK(machine.limit() == 1'000'000);
}

TEST_CASE("memory limit: of version 1, among other controllers, and beside version 2") {
  Machine machine;
  machine.file("proc/self/cgroup", "12:cpu,cpuacct:/a\n9:memory:/docker/abc\n0::/docker/abc\n");
  machine.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(machine.limit());
  machine.file("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "67108864\n");
  CHECK(machine.limit() == 67'108'864);
  machine.file("sys/fs/cgroup/unified/docker/memory.max", "1048576\n");
  CHECK(machine.limit() == 1'048'576);
}

TEST_CASE("memory limit: a container sees its own group as the root") {
  Machine machine;
  machine.file("proc/self/cgroup", "4:memory:/kubepods/pod7/c1\n");
  machine.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000000\n");
  CHECK(machine.limit() == 5'000'000);
}
