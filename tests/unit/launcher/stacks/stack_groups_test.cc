#include "launcher/stacks/stack_groups.h"

#include <algorithm>

#include <doctest/doctest.h>

using namespace fleetrun::launcher;

namespace {

StackFrame user(const char* function, const char* where = "") {
  return {function, where, false};
}
StackFrame library(const char* function, const char* where = "") {
  return {function, where, true};
}

const std::vector<StackFrame> kBarrier = {library("futex_wait", "futex-internal.h:146"),
                                          library("pthread_barrier_wait", "pthread_barrier_wait.c:184"),
                                          user("train", "train.c:31"), user("main", "train.c:50")};
const std::vector<StackFrame> kSleep = {library("clock_nanosleep", "clock_nanosleep.c:48"),
                                        library("nap", "nap.c:55"), user("load", "train.c:12"),
                                        user("main", "train.c:49")};
const std::vector<StackFrame> kIdle = {library("poll", "poll.c:29"), user("serve", "pool.cc:3")};

ProcessStacks process(std::size_t index, std::vector<StackFrame> frames, const char* source = "gdb") {
  ProcessStacks stacks;
  stacks.index = index;
  stacks.role = "trainer";
  stacks.rank = static_cast<int>(index);
  stacks.pid = static_cast<pid_t>(1000 + index);
  stacks.program = "train";
  stacks.source = source;
  stacks.threads = {{"train", std::move(frames)}};
  return stacks;
}

ProcessStacks by_kernel(std::size_t index, const char* call) {
  ProcessStacks stacks = process(index, {}, "");
  stacks.threads.clear();
  stacks.kernel = {{"train", {library(call)}}};
  return stacks;
}

}  // namespace

TEST_CASE("gdb's stacks lose addresses and arguments, and the main thread comes first") {
  constexpr std::string_view kText = R"([New LWP 23610]
0x00007f9954a8b545 in __GI___clock_nanosleep (clock_id=clock_id@entry=0) at ../sysdeps/unix/clock_nanosleep.c:48

Thread 2 (Thread 0x7f99549b86c0 (LWP 23610) "loader thread"):
#0  futex_wait (private=0, expected=0, futex_word=0x5634d863b064 <b+4>) at ../sysdeps/nptl/futex-internal.h:146
#1  ___pthread_barrier_wait (barrier=0x5634d863b060 <b>) at ./nptl/pthread_barrier_wait.c:184
#2  0x00005634d8638184 in std::function<void (int)>::operator() (this=0x7ffe, n=3) at /src/pool.cc:4
#3  0x00007f9954ac58ec in clone3 () from /lib/x86_64-linux-gnu/libc.so.6

Thread 1 (Thread 0x7f99549b9740 (LWP 23605) "h"):
#0  0x00007f9954a8b545 in __GI___clock_nanosleep (clock_id=0, req=0x7fff942e24b0) at ../sysdeps/unix/clock_nanosleep.c:48
#1  0x00000000005d64b4 in ?? ()
#2  0x0000000000545963 in ?? ()
#3  0x00005634d86381a3 in trainer_loop (n=3, name=0x5634d8639004 "a (b) at c") at /tmp/h.c:5
#4  0x00005634d8638215 in main ()
[Inferior 1 (process 23605) detached]
)";
  const auto threads = parse_gdb_stacks(kText);
  REQUIRE(threads.size() == 2);
  CHECK(threads[0] == ThreadStack{"h",
                                  {library("clock_nanosleep", "clock_nanosleep.c:48"), user("??"),
                                   user("trainer_loop", "h.c:5"), user("main")}});
  CHECK(threads[1] == ThreadStack{"loader thread",
                                  {library("futex_wait", "futex-internal.h:146"),
                                   library("pthread_barrier_wait", "pthread_barrier_wait.c:184"),
                                   user("std::function<void (int)>::operator()", "pool.cc:4"),
                                   library("clone3", "libc.so.6")}});
}

TEST_CASE("py-spy's stacks begin with the main thread") {
  constexpr std::string_view kText = R"(Process 23649: /usr/bin/python3 /tmp/d.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 23651 (idle): "loader"
    loader (d.py:3)
    Thread.run (threading.py:975)
Thread 23649 (idle): "MainThread"
    wait (threading.py:320)
    <genexpr> (pkg/train (1).py:6)
    <module> (d.py:7)
)";
  const auto threads = parse_py_spy_stacks(kText);
  REQUIRE(threads.size() == 2);
  CHECK(threads[0] == ThreadStack{"MainThread",
                                  {library("wait", "threading.py:320"),
                                   user("<genexpr> (pkg/train", "1).py:6"), user("<module>", "d.py:7")}});
  CHECK(threads[1].name == "loader");
}

TEST_CASE("a tool's complaints are no stacks") {
  for (const char* text : {"", "\n\n", "Error: Permission denied (os error 13)\n   0: py_spy::main\n",
                           "ptrace: Operation not permitted.\n#0 nothing\n", "Thread \nThread 1:\n"}) {
    CAPTURE(text);
    CHECK(parse_gdb_stacks(text).empty());
    CHECK(parse_py_spy_stacks(text).empty());
  }
}

TEST_CASE("no text is too strange to be read") {
  std::string text = "Thread 1 (x \"y\"):\n";
  for (int i = 0; i < 5000; ++i)
    text += "#" + std::to_string(i) + "  0x1 in f" + std::to_string(i) + " (<<(((\n";
  text += std::string("#\n#1\n#2 \nThread \"\n\x80\xff (\n    (\n     )\n", 36);
  const auto threads = parse_gdb_stacks(text);
  REQUIRE_FALSE(threads.empty());
  CHECK(threads.back().frames.size() <= 200);
  parse_py_spy_stacks(text);
}

TEST_CASE("the one that is not where the others are is named") {
  const StackReport report =
      group_stacks({process(0, kBarrier), process(1, kBarrier), process(2, kSleep), process(3, kBarrier)});
  CHECK(report.odd == std::vector<std::size_t>{2});
  REQUIRE(report.groups.size() == 2);
  CHECK(report.groups[0].ranks == std::vector<int>{0, 1, 3});
  CHECK(summary(report) ==
        "3 trainers (0,1,3) in pthread_barrier_wait, called by train (train.c:31); trainer 2 in nap, "
        "called by load "
        "(train.c:12)");
  CHECK(to_text(report) ==
        "3 trainers (0,1,3):\n"
        "    futex_wait (futex-internal.h:146)\n"
        "    pthread_barrier_wait (pthread_barrier_wait.c:184)\n"
        "    train (train.c:31)\n"
        "    main (train.c:50)\n"
        "trainer 2, not where the others are:\n"
        "    clock_nanosleep (clock_nanosleep.c:48)\n"
        "    nap (nap.c:55)\n"
        "    load (train.c:12)\n"
        "    main (train.c:49)\n");
}

TEST_CASE("without a majority nobody is odd") {
  CHECK(group_stacks({process(0, kBarrier), process(1, kSleep)}).odd.empty());
  CHECK(group_stacks({process(0, kBarrier), process(1, kSleep), process(2, kBarrier), process(3, kSleep)})
            .odd.empty());
  CHECK(group_stacks({process(0, kBarrier)}).odd.empty());
  CHECK(group_stacks({}).groups.empty());
}

TEST_CASE("roles are not compared with each other") {
  ProcessStacks server = process(0, kIdle);
  server.role = "server";
  ProcessStacks trainers[] = {process(1, kBarrier), process(2, kBarrier), process(3, kSleep)};
  const StackReport report = group_stacks({server, trainers[0], trainers[1], trainers[2]});
  CHECK(report.odd == std::vector<std::size_t>{3});
  CHECK(report.groups.size() == 3);
  CHECK(report.groups[0].role == "server");
}

TEST_CASE("where the main threads are alike the others decide") {
  std::vector<ProcessStacks> processes;
  for (std::size_t i = 0; i < 4; ++i) {
    processes.push_back(process(i, kBarrier));
    // Pools of different sizes are not a difference.
    for (std::size_t pool = 0; pool <= i; ++pool) processes[i].threads.push_back({"pool", kIdle});
  }
  CHECK(group_stacks(processes).odd.empty());
  processes[1].threads.push_back({"loader", kSleep});
  const StackReport report = group_stacks(processes);
  CHECK(report.odd == std::vector<std::size_t>{1});
  CHECK(to_text(report).find("trainer 1, not where the others are:\n") != std::string::npos);
  CHECK(to_text(report).find("    and 2 threads in poll, called by serve (pool.cc:3)\n"
                             "    and 1 thread in nap, called by load (train.c:12)\n") != std::string::npos);
}

TEST_CASE("stacks of different tools are compared by what /proc says of all") {
  ProcessStacks read = process(0, kBarrier);
  read.kernel = {{"train", {library("futex()")}}};
  const StackReport report = group_stacks(
      {read, by_kernel(1, "futex()"), by_kernel(2, "clock_nanosleep()"), by_kernel(3, "futex()")});
  CHECK(report.odd == std::vector<std::size_t>{2});
  CHECK(summary(report) ==
        "3 trainers (0,1,3) in pthread_barrier_wait, called by train (train.c:31); trainer 2 in "
        "clock_nanosleep()");
}

TEST_CASE("a process that waits for its child is represented by the child") {
  ProcessStacks shell = process(0, {library("wait4"), user("waitchld"), user("main")});
  ProcessStacks child = process(0, kSleep);
  child.leader = false;
  const StackReport report = group_stacks({shell, child, process(1, kBarrier), process(2, kBarrier)});
  CHECK(report.odd == std::vector<std::size_t>{0});
  CHECK(report.groups[1].frames == kSleep);
  // A parent that works is the process, whatever its children do.
  const StackReport worker = group_stacks({process(0, kBarrier), child});
  REQUIRE(worker.groups.size() == 1);
  CHECK(worker.groups[0].frames == kBarrier);
}

TEST_CASE("what could not be read is said, and long stacks are cut") {
  std::vector<StackFrame> deep;
  for (int i = 0; i < 40; ++i) deep.push_back(user(("f" + std::to_string(i)).c_str()));
  ProcessStacks silent = process(1, {});
  silent.threads.clear();
  silent.trouble = "gdb: ptrace: Operation not permitted.";
  const StackReport report = group_stacks({process(0, deep), silent});
  const std::string text = to_text(report);
  CHECK(text.find("    f11\n    … 28 more\n") != std::string::npos);
  CHECK(text.find("(no stack could be read)\n") != std::string::npos);
  CHECK(text.find("(trainer 1: gdb: ptrace: Operation not permitted.)\n") != std::string::npos);
}

TEST_CASE("the report is also JSON, whatever bytes a frame has") {
  const StackReport report = group_stacks({process(0, {user("f\xff\"\n")})});
  CHECK(
      to_json(report) ==
      R"({"groups":[{"frames":["f�\"\\x0a"],"indices":[0],"ranks":[0],"role":"trainer","source":"gdb","threads":[]}],"notes":[],"odd":[]})");
}
