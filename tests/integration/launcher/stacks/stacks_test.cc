#include "launcher/stacks/stacks.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <fstream>
#include <functional>
#include <list>
#include <string>

#include <doctest/doctest.h>

#include "launcher/host/resource_usage.h"
#include "launcher/stacks/stack_kernel.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using fleetrun::tests::TempDir;
using namespace std::chrono_literals;

namespace {

char state_of(pid_t pid) {
  for (const ProcStat& process : read_processes()) {
    if (process.pid == pid) return process.state;
  }
  return 0;
}

/// Looks until `condition` holds, for a time that no machine needs.
bool wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < 20'000; ++i) {
    if (condition()) return true;
    ::poll(nullptr, 0, 1);
  }
  return false;
}

/// A process of its own session that does `work`; killed with its session at the end.
class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::setsid();
    work();
    ::_exit(0);
  }
  ~Child() {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  bool in_call(const std::string& name) const {
    return wait_until([&] {
      const auto threads = read_kernel_stacks(pid_);
      return !threads.empty() && std::any_of(threads[0].frames.begin(), threads[0].frames.end(),
                                             [&](const StackFrame& frame) { return frame.function == name; });
    });
  }

 private:
  pid_t pid_;
};

void wait_for_futex() {
  int word = 0;
  for (;;) ::syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
}

void sleep_for_ever() {
  timespec day = {86'400, 0};
  for (;;) ::clock_nanosleep(CLOCK_MONOTONIC, 0, &day, nullptr);
}

void write_script(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  ::chmod(path.c_str(), 0755);
}

std::vector<ProcessStacks> read_all(const std::vector<StackTarget>& targets, StackSettings settings) {
  boost::asio::io_context loop{1};
  std::vector<ProcessStacks> read;
  int calls = 0;
  std::unique_ptr<StackReading> reading;
  reading = read_stacks(loop, targets, std::move(settings), [&](std::vector<ProcessStacks> stacks) {
    read = std::move(stacks);
    ++calls;
    reading.reset();
  });
  loop.run();
  CHECK(calls == 1);
  return read;
}

StackSettings with_path(const std::string& path) {
  StackSettings settings;
  settings.environment.set("PATH", path);
  return settings;
}

}  // namespace

TEST_CASE("without any tool the one that sleeps is told from those that wait") {
  const Child children[] = {Child(wait_for_futex), Child(wait_for_futex), Child(sleep_for_ever),
                            Child(wait_for_futex)};
  std::vector<StackTarget> targets;
  for (std::size_t i = 0; i < 4; ++i) {
    REQUIRE(children[i].in_call(i == 2 ? "clock_nanosleep()" : "futex()"));
    targets.push_back({i, "trainer", static_cast<int>(i), children[i].pid()});
  }
  const StackReport report = group_stacks(read_all(targets, with_path("/nonexistent")));
  CHECK(report.odd == std::vector<std::size_t>{2});
  CHECK(summary(report) == "3 trainers (0,1,3) in futex(); trainer 2 in clock_nanosleep()");
  CHECK(report.notes == std::vector<std::string>{"gdb is not in PATH, so only system calls are known"});
}

TEST_CASE("a stopped process is said to be stopped, and what a read waits for is named") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Child reader([&] {
    char byte;
    (void)!::read(ends[0], &byte, 1);
  });
  REQUIRE(reader.in_call("read()"));
  const auto stacks = read_kernel_stacks(reader.pid());
  CHECK(stacks[0].frames.back() == StackFrame{"read()", "pipe", true});
  ::kill(reader.pid(), SIGSTOP);
  REQUIRE(wait_until([&] { return state_of(reader.pid()) == 'T'; }));
  CHECK(read_kernel_stacks(reader.pid())[0].frames.front().function == "stopped by a signal");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("kernel stacks survive the way through a pipe") {
  const std::vector<ThreadStack> threads = {
      {"python3", {{"futex_wait", "kernel", true}, {"futex()", "", true}}},
      {"pool", {}},
      {"", {{"read()", "/a b", true}}}};
  const auto back = decode_kernel_stacks(encode_kernel_stacks(7, threads) + encode_kernel_stacks(8, {}));
  REQUIRE(back.size() == 2);
  CHECK(back.at(7) == threads);
  CHECK(back.at(8).empty());
  CHECK(decode_kernel_stacks("T lost\nF lost\t\nP x\nnonsense\n").empty());
}

TEST_CASE("tools that hang, spew or fail cost their time and no more") {
  const TempDir folder;
  const Child child(sleep_for_ever);
  REQUIRE(child.in_call("clock_nanosleep()"));
  StackSettings settings = with_path(folder.path().string() + ":/usr/bin:/bin");
  settings.tool_deadline = 100ms;
  std::string script, trouble;
  SUBCASE("hang, with a child that ignores signals") {
    script = "#!/bin/sh\ntrap '' TERM HUP INT\nsleep 86400 & sleep 86400\n";
    trouble = "gdb: it took too long";
  }
  SUBCASE("spew") {
    script = "#!/bin/sh\nexec yes nonsense\n";
    settings.max_bytes = 90'000;  // whole lines
    settings.tool_deadline = 10s;
    trouble = "gdb: nonsense";
  }
  SUBCASE("fail") {
    script = "#!/bin/sh\necho about to attach\necho 'ptrace: Operation not permitted.' >&2\nexit 1\n";
    settings.tool_deadline = 10s;
    trouble = "gdb: ptrace: Operation not permitted.";
  }
  SUBCASE("print nothing") {
    script = "#!/bin/sh\nexit 0\n";
    settings.tool_deadline = 10s;
    trouble = "gdb: no output";
  }
  write_script(folder.path().string() + "/gdb", script);
  const auto stacks = read_all({{0, "trainer", 0, child.pid()}}, settings);
  REQUIRE(stacks.size() == 1);
  CHECK(stacks[0].trouble == trouble);
  CHECK(stacks[0].threads.empty());
  REQUIRE_FALSE(stacks[0].kernel.empty());
  CHECK(stacks[0].kernel[0].frames.back().function == "clock_nanosleep()");
}

TEST_CASE("the whole reading has a deadline, and the first targets are read first") {
  const TempDir folder;
  std::list<Child> children;
  std::vector<StackTarget> targets;
  for (std::size_t i = 0; i < 12; ++i) {
    children.emplace_back(sleep_for_ever);
    targets.push_back({i, "trainer", static_cast<int>(i), children.back().pid()});
  }
  // The first two answer, the others never do.
  const std::string first = std::to_string(targets[0].pid), second = std::to_string(targets[1].pid);
  write_script(folder.path().string() + "/gdb",
               "#!/bin/sh\ncase \"$4\" in " + first + "|" + second +
                   ") echo 'Thread 1 (LWP 1 \"x\"):'; echo '#0  0x1 in f ()'; exit;; esac\n"
                   "exec sleep 86400\n");
  StackSettings settings = with_path(folder.path().string() + ":/usr/bin:/bin");
  settings.deadline = 500ms;
  settings.at_once = 2;
  const auto stacks = read_all(targets, settings);
  REQUIRE(stacks.size() == 12);
  CHECK(stacks[0].source == "gdb");
  CHECK(stacks[1].source == "gdb");
  CHECK(stacks[2].trouble == "reading took too long");
  CHECK(stacks[3].trouble == "reading took too long");
  CHECK(stacks[11].trouble == "there was no time to read it");
  CHECK_FALSE(stacks[11].kernel.empty());
}

TEST_CASE("a shell's child stands for it, and tools see neither the job's libraries nor its modules") {
  const TempDir folder;
  const Child shell([] { ::execl("/bin/sh", "sh", "-c", "sleep 86400; true", static_cast<char*>(nullptr)); });
  REQUIRE(wait_until([&] {
    for (const ProcStat& process : read_processes()) {
      if (process.parent == shell.pid() && process.state == 'S') return true;
    }
    return false;
  }));
  REQUIRE(shell.in_call("wait4()"));
  write_script(folder.path().string() + "/gdb",
               "#!/bin/sh\necho \"Thread 1 (LWP 1 \\\"x\\\"):\"\necho \"#0  "
               "preload:$LD_PRELOAD:home:$PYTHONHOME:job:$JOB ()\"\n");
  StackSettings settings = with_path(folder.path().string() + ":/usr/bin:/bin");
  settings.environment.set("LD_PRELOAD", "/nonexistent.so");
  settings.environment.set("PYTHONHOME", "/nonexistent");
  settings.environment.set("JOB", "kept");
  const auto stacks = read_all({{0, "trainer", 0, shell.pid()}}, settings);
  REQUIRE(stacks.size() == 2);
  CHECK(stacks[0].leader);
  CHECK_FALSE(stacks[1].leader);
  CHECK(stacks[0].threads.at(0).frames.at(0).function == "preload::home::job:kept");
  CHECK(all_stacks_text(stacks).find("trainer 0, below it: pid ") != std::string::npos);
  const StackReport report = group_stacks(stacks);
  REQUIRE(report.groups.size() == 1);
  CHECK(report.groups[0].indices == std::vector<std::size_t>{0});
}

TEST_CASE("a reading that is given up leaves nothing behind") {
  const TempDir folder;
  write_script(folder.path().string() + "/gdb",
               "#!/bin/sh\necho $$ > '" + folder.path().string() + "/pid'\nexec sleep 86400\n");
  const Child child(sleep_for_ever);
  boost::asio::io_context loop{1};
  bool called = false;
  auto reading = read_stacks(loop, {{0, "trainer", 0, child.pid()}},
                             with_path(folder.path().string() + ":/usr/bin:/bin"),
                             [&](const std::vector<ProcessStacks>&) { called = true; });
  pid_t tool = 0;
  REQUIRE(wait_until([&] {
    loop.poll();
    return static_cast<bool>(std::ifstream(folder.path().string() + "/pid") >> tool);
  }));
  reading.reset();
  loop.run();
  CHECK_FALSE(called);
  CHECK(wait_until([&] { return ::waitpid(tool, nullptr, WNOHANG) != 0; }));
}
