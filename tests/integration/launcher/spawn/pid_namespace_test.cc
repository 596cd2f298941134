// --containment=pidns: what a process sees must be what it sees without, but for its pid.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "launcher/init/process_table.h"
#include "runtime/base/error.h"
#include "tests/integration/launcher/spawn/test_pod.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

SetupFrame in_namespace() {
  SetupFrame setup;
  setup.containment = ContainmentLevel::pidns;
  return setup;
}

/// Does the pod have a namespace? Where the kernel refuses one, the reason is there and the test is over.
bool has_namespace(const ContainedFrame& contained) {
  if (contained.level == "pidns") {
    CHECK(contained.reason.empty());
    return true;
  }
  CHECK(contained.reason.find("no pid namespace: ") != std::string::npos);
  MESSAGE("skipped, " << contained.reason);
  return false;
}

std::string link_target(const std::string& path) {
  char target[256] = {};
  return ::readlink(path.c_str(), target, sizeof target - 1) > 0 ? target : "";
}

/// Two processes of the pod that live until they are killed, told apart by their pids on the host.
struct Pair {
  pid_t first, second;
};

Pair start_pair(TestPod& pod) {
  pod.start(0, "exec sleep 100");
  pod.start(1, "exec sleep 100");
  const pid_t first = pod.await<StartedFrame>().pid;
  return {first, pod.await<StartedFrame>().pid};
}

std::string command_of(pid_t pid) {
  return read_whole("/proc/" + std::to_string(pid) + "/cmdline");
}

/// Waits for the process to be gone from the host.
void await_end(pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + kPodDeadline;
  while (exists(pid) && state_of(pid).state != "Z" && std::chrono::steady_clock::now() < deadline)
    ::sched_yield();
  const bool alive = exists(pid) && state_of(pid).state != "Z";
  CHECK_FALSE(alive);
}

}  // namespace

TEST_CASE("a process in a pid namespace has a right /proc/self, and shares /tmp and /dev/shm with the host") {
  TestPod pod(in_namespace());
  if (!has_namespace(pod.await<ContainedFrame>())) return pod.finish();
  char shared[] = "/dev/shm/fleetrun-test-XXXXXX";
  REQUIRE(::close(::mkstemp(shared)) == 0);
  pod.start(0,
            "test $$ = $(cut -d' ' -f1 /proc/$$/stat) && readlink -f /proc/self/exe | grep -q readlink && "
            "echo right; "
            "stat -c '%d:%i' /tmp /dev/shm " +
                std::string(shared) +
                "; cat /proc/self/status | grep -c ^Threads; "
                "ls /proc | grep -c '^[0-9]*$'");
  CHECK(pod.read_line() == "right");
  for (const char* path : {"/tmp", "/dev/shm", static_cast<const char*>(shared)}) {
    struct stat here = {};
    REQUIRE(::stat(path, &here) == 0);
    CHECK(pod.read_line() == std::to_string(here.st_dev) + ":" + std::to_string(here.st_ino));
  }
  CHECK(pod.read_line() == "1");
  CHECK(std::stoi(pod.read_line()) <= 5);  // init and its own: nothing of the host
  ::unlink(shared);
  pod.finish();
}

TEST_CASE("pids are the host's, and all processes of a pod share one namespace") {
  TestPod pod(in_namespace());
  if (!has_namespace(pod.await<ContainedFrame>())) return pod.finish();
  const Pair pair = start_pair(pod);
  const std::string expected(
      "sleep\0"
      "100\0",
      10);
  while (command_of(pair.first) != expected || command_of(pair.second) != expected) ::sched_yield();
  const std::string first = link_target("/proc/" + std::to_string(pair.first) + "/ns/pid");
  CHECK(first == link_target("/proc/" + std::to_string(pair.second) + "/ns/pid"));
  CHECK(first != link_target("/proc/self/ns/pid"));
  CHECK_FALSE(first.empty());
  ::kill(pair.second, SIGUSR1);
  const auto exited = pod.await<ExitedFrame>();
  CHECK(exited.pid == pair.second);
  CHECK(exited.index == 1);
  CHECK(WTERMSIG(exited.wait_status) == SIGUSR1);
  pod.finish();
  await_end(pair.first);
}

TEST_CASE("when outer init is killed, the namespace ends with all that is in it, sessions of their own too") {
  TestPod pod(in_namespace());
  const auto contained = pod.await<ContainedFrame>();
  if (!has_namespace(contained)) return pod.finish();
  const Pair pair = start_pair(pod);
  pod.start(2, leaving("exec sleep 100"));
  pod.read_line();
  ::kill(contained.init_pid, SIGKILL);
  pod.await_loss();
  await_end(pair.first);
  await_end(pair.second);
  if (!contained.cgroup.empty()) CHECK(::access(contained.cgroup.c_str(), F_OK) != 0);
}

TEST_CASE("in a pid namespace processes are swept and started again") {
  TestPod pod(in_namespace());
  if (!has_namespace(pod.await<ContainedFrame>())) return pod.finish();
  for (int attempt = 0; attempt < 2; ++attempt) {
    pod.start(0, leaving("exit 3"), true);
    pod.read_line();
    pod.await<ExitedFrame>();
    pod.start(1, "exec sleep 100");
    pod->sweep(0);
    CHECK(pod.await<SweptFrame>().index == 0);
    pod->sweep();
    CHECK(pod.await<SweptFrame>().index == kEveryProcess);
  }
  pod.finish();
}

TEST_CASE(
    "where the kernel refuses a pid namespace, the next level is taken with a word, or nothing is started") {
  if (std::system("unshare -Ur true") != 0) {  // NOLINT: a fixed command
    MESSAGE("skipped: no user namespaces here");
    return;
  }
  char path[] = "/tmp/fleetrun-init-test-XXXXXX";
  const int fd = ::mkstemp(path);
  REQUIRE(fd >= 0);
  const std::string script =
      "#!/bin/sh\nexec unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces; exec " +
      TestPod::own_init() + " \"$@\"' sh \"$@\"\n";
  REQUIRE(::write(fd, script.data(), script.size()) == static_cast<ssize_t>(script.size()));
  ::fchmod(fd, 0700);
  ::close(fd);
  {
    TestPod pod(in_namespace(), path);
    const auto contained = pod.await<ContainedFrame>();
    CHECK(contained.level != "pidns");
    CHECK(contained.reason.starts_with("no pid namespace: No space left on device"));
    pod.start(0, "exit 3");
    CHECK(WEXITSTATUS(pod.await<ExitedFrame>().wait_status) == 3);
    pod.finish();
  }
  {
    SetupFrame setup;
    setup.required = ContainmentLevel::pidns;
    TestPod pod(setup, path);
    pod.start(0, "echo it ran");
    std::string error;
    try {
      pod.await_loss();
    } catch (const Error& refused) {
      error = render(refused, "fleetrun");
    }
    CHECK(error.find("containment pidns is required, and only ") != std::string::npos);
    CHECK(error.find("no pid namespace: ") != std::string::npos);
    CHECK(error.find("hint: leave out --require_containment") != std::string::npos);
    CHECK_FALSE(pod.has_line());
  }
  ::unlink(path);
}
