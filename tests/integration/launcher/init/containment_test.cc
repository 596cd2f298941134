#include "launcher/init/containment.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include <doctest/doctest.h>

#include "launcher/init/process_table.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

/// Forks a child that forks a grandchild in a session of its own; both wait to be killed. Returns the
/// grandchild's pid.
pid_t start_two_generations() {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  if (::fork() == 0) {
    ::close(ends[0]);
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::setsid();
    if (grandchild != 0) (void)!::write(ends[1], &grandchild, sizeof grandchild);
    for (;;) ::pause();
  }
  ::close(ends[1]);
  pid_t grandchild = -1;
  REQUIRE(::read(ends[0], &grandchild, sizeof grandchild) == sizeof grandchild);
  ::close(ends[0]);
  return grandchild;
}

}  // namespace

TEST_CASE("descendants are found in other sessions too, and killing all of them leaves no child") {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t grandchild = start_two_generations();
  const std::vector<pid_t> found = descendants_of(::getpid());
  CHECK(found.size() == 2);
  CHECK(std::find(found.begin(), found.end(), grandchild) != found.end());
  kill_everything_below("");
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
  CHECK(errno == ECHILD);
  CHECK(::kill(grandchild, 0) == -1);
  CHECK(descendants_of(::getpid()).empty());
}

TEST_CASE("a cgroup leaf can be made, killed and removed where this process may write") {
  const CgroupLeaf leaf = make_cgroup_leaf("test");
  if (leaf.path.empty()) {
    MESSAGE("no writable cgroup v2 here: skipped");
    return;
  }
  CHECK(::access(leaf.path.c_str(), F_OK) == 0);
  CHECK(kill_cgroup(leaf.path));
  remove_cgroup(leaf.path);
  CHECK(::access(leaf.path.c_str(), F_OK) == -1);
  CHECK_FALSE(kill_cgroup(leaf.path));
}

TEST_CASE("empty leaves of inits that are gone are removed; those of other containers stay") {
  const CgroupLeaf own = make_cgroup_leaf("test");
  if (own.path.empty()) {
    MESSAGE("no writable cgroup v2 here: skipped");
    return;
  }
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const std::string beside = own.path.substr(0, own.path.rfind('-') + 1);
  const std::string stale = beside + std::to_string(gone);
  const std::string foreign =
      own.path.substr(0, own.path.rfind('/')) + "/fleetrun-test-1-" + std::to_string(gone);
  REQUIRE_FALSE(make_cgroup(stale).path.empty());
  REQUIRE_FALSE(make_cgroup(foreign).path.empty());
  remove_stale_cgroups(own.path);
  CHECK(::access(stale.c_str(), F_OK) == -1);
  CHECK(::access(foreign.c_str(), F_OK) == 0);
  CHECK(::access(own.path.c_str(), F_OK) == 0);
  remove_cgroup(foreign);
  remove_cgroup(own.path);
}
