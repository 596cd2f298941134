// What a pod can do with processes that live: pass descriptors, bind, sweep, start again.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "launcher/init/process_table.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"
#include "tests/integration/launcher/spawn/test_pod.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

TEST_CASE("descriptors arrive under their numbers, whatever numbers they had") {
  TestPod pod;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd read_end(ends[0]), write_end(ends[1]);
  StartExtras extras = pod.extras();
  extras.stdin_fd = read_end.value();
  // Numbers that init uses itself, in an order that makes them collide.
  for (int number = 3; number < 40; ++number) extras.passed.push_back({write_end.value(), number});
  pod->start(
      0,
      TestPod::shell("for n in $(seq 3 9); do echo $n >&$n; done; ls /proc/self/fd | sort -n | tr '\\n' ' '; "
                     "echo; while [ $((i=i+1)) -lt 8 ] && read line; do echo got $line; done"),
      extras);
  std::string expected;
  for (int number = 0; number < 40; ++number) expected += std::to_string(number) + " ";
  std::string listed = pod.read_line();
  for (int number = 3; number <= 9; ++number) CHECK(pod.read_line() == "got " + std::to_string(number));
  CHECK(listed.find("39 40 ") != std::string::npos);  // the directory that ls reads is one more
  CHECK(listed.find("41") == std::string::npos);
  CHECK(WEXITSTATUS(pod.await<ExitedFrame>().wait_status) == 0);
  pod.finish();
}

TEST_CASE("more descriptors than a message can carry are refused, not lost") {
  TestPod pod;
  StartExtras extras = pod.extras();
  for (int number = 3; number <= 251; ++number) extras.passed.push_back({extras.log_fd, number});
  CHECK_THROWS_WITH_AS(pod->start(0, TestPod::shell("exit 0"), extras),
                       "249 descriptors cannot be passed to one process, only 248", Error);
  extras.passed.pop_back();
  pod->start(0, TestPod::shell("exit 5"), extras);
  CHECK(WEXITSTATUS(pod.await<ExitedFrame>().wait_status) == 5);
  pod.finish();
}

TEST_CASE("a process is bound to the cores it is given, and cores that do not exist are an error") {
  TestPod pod;
  ProcessSpec bound = TestPod::shell("grep Cpus_allowed_list /proc/self/status | tr -d '\\t'");
  bound.cpus = {0};
  bound.memory_nodes = {0};
  pod->start(0, bound, pod.extras());
  CHECK(pod.read_line() == "Cpus_allowed_list:0");
  ProcessSpec nowhere = TestPod::shell("exit 0");
  nowhere.cpus = {9999};
  pod->start(1, nowhere, pod.extras());
  const auto failed = pod.await<FailedFrame>();
  CHECK(failed.stage == "cpus");
  CHECK(failed.error == EINVAL);
  ProcessSpec no_memory = TestPod::shell("exit 0");
  no_memory.memory_nodes = {9999};
  pod->start(2, no_memory, pod.extras());
  // A container may forbid the preference, and the process does without.
  if (::syscall(SYS_set_mempolicy, 0, nullptr, 0) == 0)
    CHECK(pod.await<FailedFrame>().stage == "memory nodes");
  else
    CHECK(WEXITSTATUS(pod.await<ExitedFrame>().wait_status) == 0);
  pod.finish();
}

TEST_CASE("a signal reaches one process, and a stopped one is woken for it") {
  TestPod pod;
  pod.start(0, "exec 2>/dev/null; trap 'echo term; exit 7' TERM; echo ready; while :; do sleep 0.01; done");
  pod.start(1, "exec sleep 100");
  CHECK(pod.read_line() == "ready");
  const auto first = pod.await<StartedFrame>();
  CHECK(exists(first.pid));
  pod->signal(0, SIGSTOP, false);
  pod->signal(0, SIGTERM, true);
  CHECK(pod.read_line() == "term");
  const auto exited = pod.await<ExitedFrame>();
  CHECK(exited.pid == first.pid);
  CHECK(WEXITSTATUS(exited.wait_status) == 7);
  pod->kill(1);
  const auto killed = pod.await<ExitedFrame>();
  CHECK(killed.index == 1);
  CHECK(WTERMSIG(killed.wait_status) == SIGKILL);
  pod->signal(1, SIGTERM, true);  // nothing happens
  pod.finish();
}

TEST_CASE("a sweep of everything leaves nothing below init, and processes start again after it") {
  TestPod pod;
  for (int attempt = 0; attempt < 3; ++attempt) {
    pod.start(0, leaving("exit 3"));
    pod.start(1, "exec sleep 100");
    const pid_t orphan = std::stoi(pod.read_line());
    CHECK(WEXITSTATUS(pod.await<ExitedFrame>().wait_status) == 3);
    CHECK(exists(orphan));
    pod->sweep();
    CHECK(WTERMSIG(pod.await<ExitedFrame>().wait_status) == SIGKILL);
    CHECK(pod.await<SweptFrame>().index == kEveryProcess);
    CHECK_FALSE(exists(orphan));
  }
  pod.finish();
}

TEST_CASE("a sweep of one process takes its leftovers, and nobody else's") {
  for (const auto level : {ContainmentLevel::subreaper, ContainmentLevel::cgroup2}) {
    for (const bool alone : {true, false}) {
      SetupFrame setup;
      setup.containment = level;
      CAPTURE(alone);
      TestPod pod(setup);
      pod.start(0, leaving("exit 3"), alone);
      const pid_t mine = std::stoi(pod.read_line());
      pod.await<ExitedFrame>();
      pod.start(1, leaving("exit 4"), alone);
      const pid_t other = std::stoi(pod.read_line());
      pod.await<ExitedFrame>();
      pod->sweep(0);
      CHECK(pod.await<SweptFrame>().index == 0);
      CHECK_FALSE(exists(mine));
      CHECK(exists(other));
      // The next life of the process, which is swept while it is alive.
      pod.start(0, leaving("exec sleep 100"), alone);
      const pid_t again = std::stoi(pod.read_line());
      pod->sweep(0);
      CHECK(pod.await<ExitedFrame>().index == 0);
      CHECK(pod.await<SweptFrame>().index == 0);
      CHECK_FALSE(exists(again));
      CHECK(exists(other));
      pod.finish();
      CHECK_FALSE(exists(other));
    }
  }
}

TEST_CASE("a process that was never started is swept at once") {
  TestPod pod;
  pod->sweep(5);
  CHECK(pod.await<SweptFrame>().index == 5);
  pod->sweep();
  CHECK(pod.await<SweptFrame>().index == kEveryProcess);
  pod.finish();
}

TEST_CASE("of children that end at once none is lost, however late init records and reports them") {
  for (const char* failpoint : {"", "init-record-delay=2ms", "init-report-delay=2ms"}) {
    CAPTURE(failpoint);
    ::setenv("FLEETRUN_FAILPOINT", failpoint, 1);
    TestPod pod;
    ::unsetenv("FLEETRUN_FAILPOINT");
    constexpr std::size_t kProcesses = 200;
    ProcessSpec nothing;
    nothing.program = "/bin/true";
    nothing.argv = {"true"};
    ProcessSpec missing;
    missing.program = "/nosuch/program";
    missing.argv = {"program"};
    for (std::size_t i = 0; i < kProcesses; ++i) pod->start(i, i % 10 == 9 ? missing : nothing, pod.extras());
    std::vector<int> started(kProcesses), ended(kProcesses);
    for (std::size_t count = 0; count < kProcesses;) {
      const Frame frame = pod.await_any();
      if (const auto* begun = std::get_if<StartedFrame>(&frame)) ++started[begun->index];
      const auto* exited = std::get_if<ExitedFrame>(&frame);
      const auto* failed = std::get_if<FailedFrame>(&frame);
      if (exited == nullptr && failed == nullptr) continue;
      const std::size_t index = exited != nullptr ? exited->index : failed->index;
      CHECK((failed != nullptr) == (index % 10 == 9));
      CHECK(started[index] == 1);  // first that, then this
      ++ended[index];
      ++count;
    }
    CHECK(std::all_of(ended.begin(), ended.end(), [](int times) { return times == 1; }));
    pod.finish();
  }
}

namespace {

/// A freezer of cgroup v1: what is frozen in it does not die of SIGKILL until it is thawed.
class Freezer {
 public:
  Freezer() : path_("/sys/fs/cgroup/freezer/fleetrun-test-" + std::to_string(::getpid())) {
    there_ = ::mkdir(path_.c_str(), 0700) == 0;
  }
  ~Freezer() {
    if (!there_) return;
    write("freezer.state", "THAWED");
    const auto deadline = std::chrono::steady_clock::now() + kPodDeadline;
    while (::rmdir(path_.c_str()) != 0 && std::chrono::steady_clock::now() < deadline) ::sched_yield();
  }
  bool is_there() const { return there_; }
  void write(const std::string& file, const std::string& text) const {
    const UniqueFd fd(::open((path_ + "/" + file).c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(::write(fd.value(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void freeze(pid_t pid) const {
    write("cgroup.procs", std::to_string(pid));
    write("freezer.state", "FROZEN");
    const auto deadline = std::chrono::steady_clock::now() + kPodDeadline;
    while (read_whole(path_ + "/freezer.state") != "FROZEN\n")
      REQUIRE(std::chrono::steady_clock::now() < deadline);
  }
  void thaw() const { write("freezer.state", "THAWED"); }

 private:
  std::string path_;
  bool there_ = false;
};

}  // namespace

TEST_CASE("a process that does not die when it is killed is named, with its state") {
  const Freezer freezer;
  if (!freezer.is_there()) {
    MESSAGE("skipped: no writable cgroup v1 freezer");
    return;
  }
  ::setenv("FLEETRUN_FAILPOINT", "init-kill-patience=50ms", 1);
  TestPod pod;
  ::unsetenv("FLEETRUN_FAILPOINT");
  for (const std::string how : {"signal", "sweep", "finish"}) {
    CAPTURE(how);
    pod.start(0, "echo up; exec sleep 100");
    const pid_t pid = pod.await<StartedFrame>().pid;
    CHECK(pod.read_line() == "up");  // before, it has init's name
    freezer.freeze(pid);
    if (how == "signal") pod->kill(0);
    if (how == "sweep") pod->sweep(0);
    if (how == "finish") pod->finish(false);
    const auto unkillable = pod.await<UnkillableFrame>();
    CHECK(unkillable.pid == pid);
    CHECK((unkillable.name == "sleep" || unkillable.name == "sh"));
    CHECK(unkillable.state == "D");
    CHECK(exists(pid));
    freezer.thaw();
    const auto exited = pod.await<ExitedFrame>();
    CHECK(WTERMSIG(exited.wait_status) == SIGKILL);
    if (how == "sweep") CHECK(pod.await<SweptFrame>().index == 0);
  }
  pod.await<EmptiedFrame>();
}
