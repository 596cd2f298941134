#include "launcher/run/hang_watch.h"

#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <list>
#include <string>

#include <doctest/doctest.h>

#include "runtime/base/unique_fd.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace std::chrono_literals;
using fleetrun::tests::TempDir;

namespace {

void say(int fd, const std::string& text) {
  (void)!::write(fd, text.data(), text.size());
}

/// What a trainer of these tests does; it never returns.
using Work = std::function<void(int heartbeat)>;

void beat_for_ever(int heartbeat) {
  for (;;) {
    say(heartbeat, "beat\n");
    ::poll(nullptr, 0, 5);
  }
}

void wait_at_barrier(int heartbeat) {
  say(heartbeat, "step 7\n");
  int word = 0;
  for (;;) ::syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
}

void sleep_for_ever(int heartbeat) {
  say(heartbeat, "step 7\n");
  for (;;) ::pause();
}

/// A watch over trainers that are real processes.
class Bench {
 public:
  Bench(const std::vector<Work>& trainers, std::chrono::milliseconds timeout,
        const std::string& path = "/nonexistent") {
    std::vector<WatchedProcess> processes;
    for (std::size_t i = 0; i < trainers.size(); ++i)
      processes.push_back({"trainer " + std::to_string(i), "trainer", static_cast<int>(i), false});
    HangWatchSettings settings = {.rules = {timeout, {}}, .stacks = {}};
    settings.stacks.environment.set("PATH", path);
    HangWatchCalls calls;
    calls.log_bytes = [](std::size_t) { return 0; };
    calls.on_hang = [this](const HangReport& report, const std::vector<ProcessStacks>&) {
      reports.push_back(report);
      loop.stop();
    };
    calls.tell = [this](const JobEvent& event) {
      told.push_back(std::get<event::Warning>(event).text);
      if (stop_when_told) loop.stop();
    };
    watch = make_hang_watch(loop, processes, settings, calls);
    watch->on_event(event::AttemptBegan{0});
    for (std::size_t i = 0; i < trainers.size(); ++i) start(i, trainers[i]);
  }
  ~Bench() {
    for (const pid_t pid : pids) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void start(std::size_t index, const Work& work) {
    const int heartbeat = watch->open_heartbeat(index);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setsid();
      work(heartbeat);
      ::_exit(0);
    }
    pids.push_back(pid);
    watch->on_event(event::ProcessStarted{index, pid, 0, 0});
  }

  /// Until a report, or a warning where `stop_when_told`; at most for a time that no machine needs.
  void run() {
    loop.restart();
    loop.run_for(60s);
  }

  boost::asio::io_context loop{1};
  std::vector<pid_t> pids;
  std::unique_ptr<HangWatch> watch;
  std::vector<HangReport> reports;
  std::vector<std::string> told;
  bool stop_when_told = false;
};

}  // namespace

TEST_CASE("one sleeps and three wait for it: the one is named") {
  Bench bench({wait_at_barrier, wait_at_barrier, sleep_for_ever, wait_at_barrier}, 300ms);
  bench.run();
  REQUIRE(bench.reports.size() == 1);
  CHECK(bench.reports[0].culprits == std::vector<std::size_t>{2});
  CHECK(bench.reports[0].text.find("trainer 2 sent no heartbeat for ") == 0);
  CHECK(bench.reports[0].text.find("(step 7 was its last)") != std::string::npos);
  CHECK(bench.reports[0].text.find("trainer 2, not where the others are:\n") != std::string::npos);
  CHECK(bench.watch->progress() == 7);
}

TEST_CASE(
    "a stopped process is found among ones that work, and only once; started anew it is watched again") {
  Bench bench({beat_for_ever, beat_for_ever}, 300ms);
  ::kill(bench.pids[1], SIGSTOP);
  bench.run();
  REQUIRE(bench.reports.size() == 1);
  CHECK(bench.reports[0].culprits == std::vector<std::size_t>{1});
  CHECK(bench.reports[0].silent == std::vector<std::size_t>{1});
  CHECK(bench.reports[0].text.find("trainer 1 has been stopped by a signal for ") == 0);

  ::kill(bench.pids[1], SIGKILL);
  bench.watch->on_event(event::ProcessExited{.index = 1, .pid = bench.pids[1], .attempt = 0, .reason = {}});
  bench.start(1, sleep_for_ever);
  bench.run();
  REQUIRE(bench.reports.size() == 2);
  CHECK(bench.reports[1].culprits == std::vector<std::size_t>{1});
  CHECK(bench.reports[1].text.find("trainer 1 sent no heartbeat for ") == 0);
}

TEST_CASE("a process that comes back to life while stacks are read is not reported") {
  const TempDir folder;
  const std::string marker = folder.file("marker");
  // The tool wakes the process up and waits until it has beaten at least once after that.
  folder.write("gdb", "#!/bin/sh\nkill -CONT $4\nfor i in 1 2; do\n: > '" + marker + "'\nwhile [ -e '" +
                          marker + "' ]; do sleep 0.01; done\ndone\n");
  ::chmod(folder.file("gdb").c_str(), 0755);
  const Work work = [&](int heartbeat) {
    for (;;) {
      say(heartbeat, "beat\n");
      ::unlink(marker.c_str());
      ::poll(nullptr, 0, 5);
    }
  };
  Bench bench({work}, 300ms, folder.path().string() + ":/usr/bin:/bin");
  bench.stop_when_told = true;
  ::kill(bench.pids[0], SIGSTOP);
  bench.run();
  CHECK(bench.reports.empty());
  REQUIRE(bench.told.size() == 1);
  CHECK(bench.told[0].find("trainer 0 has been stopped by a signal for ") == 0);
  CHECK(bench.told[0].ends_with(", and goes on"));
}

TEST_CASE("a process under a debugger is left alone, and that is said") {
  Bench bench({sleep_for_ever, sleep_for_ever}, 300ms);
  REQUIRE(::ptrace(PTRACE_SEIZE, bench.pids[0], nullptr, nullptr) == 0);
  bench.run();
  REQUIRE(bench.reports.size() == 1);
  CHECK(bench.reports[0].silent == std::vector<std::size_t>{1});
  CHECK(bench.told ==
        std::vector<std::string>{"trainer 0 is under a debugger, and is not watched for hangs meanwhile"});
}

TEST_CASE("without a timeout heartbeats are heard, and nobody hangs") {
  boost::asio::io_context loop{1};
  HangWatchCalls calls;
  std::int64_t step = 0;
  calls.on_hang = [](const HangReport&, const std::vector<ProcessStacks>&) { FAIL("nobody hangs"); };
  calls.on_step = [&](std::size_t index, std::int64_t at) {
    CHECK(index == 0);
    step = at;
    if (at == 7) loop.stop();
  };
  auto watch = make_hang_watch(loop, {{"trainer 0", "trainer", 0, false}}, {}, calls);
  const int heartbeat = watch->open_heartbeat(0);
  say(heartbeat, "step 6\n");
  const UniqueFd kept(::dup(heartbeat));
  watch->on_event(event::ProcessStarted{0, ::getpid(), 0, 0});
  say(kept.value(), "step 7\n");
  loop.run_for(60s);
  CHECK(step == 7);
  watch->on_event(event::JobEnded{0});
  loop.restart();
  loop.run();  // returns: no timer is left
  // The greatest step outlives attempts.
  watch->open_heartbeat(0);
  CHECK(watch->progress() == 7);
}

TEST_CASE("a job that is being stopped is not watched") {
  Bench bench({sleep_for_ever, beat_for_ever}, 100ms);
  bench.watch->on_event(event::StopBegan{});
  bench.loop.run_for(500ms);  // five timeouts: a report would have come
  CHECK(bench.reports.empty());
  bench.watch->on_event(event::AttemptBegan{1});
  bench.run();
  REQUIRE(bench.reports.size() == 1);
  CHECK(bench.reports[0].culprits == std::vector<std::size_t>{0});
}
