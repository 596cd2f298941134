// What a pod can do with processes that live: pass descriptors, bind, sweep, start again.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "launcher/process_spawner.h"
#include "runtime/base/environ.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

constexpr std::chrono::seconds kDeadline{30};

/// A pod with all its frames, and a pipe that its processes have as their standard output.
class TestPod final : public PodListener {
 public:
  explicit TestPod(SetupFrame setup = {}) {
    setup.pod_name = "testit";
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
    pod_ = start_pod(loop_, {.program = Environ::of_process().value_or("FLEETRUN_INIT", ""), .setup = setup},
                     *this);
  }

  Pod* operator->() { return pod_.get(); }
  const std::vector<Frame>& frames() const { return frames_; }

  StartExtras extras() const { return {.log_fd = write_end_.value()}; }

  void start(std::size_t index, const std::string& script, bool alone = false) {
    StartExtras extra = extras();
    extra.alone = alone;
    extra.environment = {"FLEETRUN_POD=testit", "FLEETRUN_ROLE=trainer",
                         "FLEETRUN_RANK=" + std::to_string(index)};
    pod_->start(index, shell(script), extra);
  }

  static ProcessSpec shell(const std::string& script) {
    ProcessSpec spec;
    spec.program = "/bin/sh";
    spec.argv = {"sh", "-c", script};
    return spec;
  }

  /// Runs the loop until a frame of this type, which `fits`, has come after the last one that was waited for.
  template <class Wanted>
  Wanted await(const std::function<bool(const Wanted&)>& fits = [](const Wanted&) { return true; }) {
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    for (;;) {
      for (; seen_ < frames_.size();) {
        const auto* wanted = std::get_if<Wanted>(&frames_[seen_++]);
        if (wanted != nullptr && fits(*wanted)) return *wanted;
      }
      REQUIRE_FALSE(lost_);
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      loop_.run_one_for(std::chrono::milliseconds(100));
    }
  }

  /// The next line that a process wrote.
  std::string read_line() {
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    std::string line;
    while (line.empty() || line.back() != '\n') {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      loop_.poll();
      pollfd ready = {read_end_.value(), POLLIN, 0};
      char byte = 0;
      if (::poll(&ready, 1, 100) == 1 && ::read(read_end_.value(), &byte, 1) == 1) line += byte;
    }
    line.pop_back();
    return line;
  }

  void finish() {
    pod_->finish();
    await<EmptiedFrame>();
  }

  void on_frame(const Frame& frame) override { frames_.push_back(frame); }
  void on_lost() override { lost_ = true; }

 private:
  boost::asio::io_context loop_;
  UniqueFd read_end_, write_end_;
  std::unique_ptr<Pod> pod_;
  std::vector<Frame> frames_;
  std::size_t seen_ = 0;
  bool lost_ = false;
};

bool exists(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

/// A script that leaves a process in a session of its own behind, which ignores SIGTERM, says its pid, and
/// goes on with `then`.
std::string leaving(const std::string& then) {
  return "setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 100; done' & " + then;
}

}  // namespace

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
  CHECK(pod.await<FailedFrame>().stage == "memory nodes");
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
