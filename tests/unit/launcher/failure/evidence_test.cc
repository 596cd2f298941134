// The machine is a directory with recorded files: two hierarchies, as Debian 12 and a container show them.
#include "launcher/failure/evidence.h"

#include <csignal>

#include <doctest/doctest.h>

#include "launcher/logs/log_tail.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

struct Machine {
  tests::TempDir dir;

  Machine() {
    file("proc/vmstat", "nr_free_pages 1\noom_kill 5\nx 1\n");
    file("proc/sys/kernel/core_pattern", "core.%e.%p\n");
  }
  void file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((dir.path() / name).parent_path());
    dir.write(name, text);
  }
  MachineRoots roots() const { return {dir.file("proc"), dir.file("cgroup"), dir.file("cgroup")}; }

  void be_v2(int kills) {
    file("proc/self/cgroup", "0::/pod/job\n");
    file("cgroup/pod/job/memory.events",
         "low 0\nhigh 0\nmax 41\noom 1\noom_kill " + std::to_string(kills) + "\noom_group_kill 0\n");
    file("cgroup/pod/job/memory.max", "max\n");
    file("cgroup/pod/job/memory.peak", "67100000\n");
    file("cgroup/pod/job/memory.current", "1000\n");
    file("cgroup/pod/memory.events", "oom_kill 9\n");
    file("cgroup/pod/memory.max", "67108864\n");
    file("cgroup/pod/memory.peak", "67108864\n");
    file("cgroup/pod/memory.current", "2000\n");
  }
  void be_v1(const std::string& group, int kills) {
    const std::string at = "cgroup/memory" + group;
    file(at + "/memory.oom_control",
         "oom_kill_disable 0\nunder_oom 0\noom_kill " + std::to_string(kills) + "\n");
    file(at + "/memory.limit_in_bytes", "67108864\n");
    file(at + "/memory.max_usage_in_bytes", "67108864\n");
    file(at + "/memory.usage_in_bytes", "4096\n");
  }
};

Death killed(std::size_t index, std::int64_t at = 0) {
  Death death;
  death.index = index;
  death.pid = 100 + static_cast<pid_t>(index);
  death.reason = {ExitReason::Kind::signaled, SIGKILL, false};
  death.at = at;
  return death;
}

Death exited(std::size_t index, std::int64_t at = 0) {
  Death death = killed(index, at);
  death.reason = {ExitReason::Kind::exited, 1, false};
  return death;
}

}  // namespace

TEST_CASE(
    "cgroup v2: a kill that was counted since the job began is evidence, with the numbers of every level") {
  Machine machine;
  machine.be_v2(3);
  EvidenceCollector collector(machine.roots());
  collector.begin();
  Evidence evidence = collector.collect(killed(0));
  CHECK(evidence.memory_counters);
  CHECK(evidence.oom_kills == 0);
  machine.be_v2(4);
  evidence = collector.collect(killed(1));
  CHECK(evidence.oom_kills == 1);
  REQUIRE(evidence.groups.size() == 2);
  CHECK(evidence.groups[0] == MemoryGroup{"/pod/job", 2, {}, 67100000, 1000});
  CHECK(evidence.groups[1] == MemoryGroup{"/pod", 2, 67108864, 67108864, 2000});
}

TEST_CASE("cgroup v1: the counter is memory.oom_control's, and 'no limit' is no number") {
  Machine machine;
  machine.file("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/a/b\n0::/\n");
  machine.be_v1("/a/b", 0);
  machine.file("cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  machine.file("cgroup/memory/a/memory.usage_in_bytes", "8192\n");
  EvidenceCollector collector(machine.roots());
  collector.begin();
  machine.be_v1("/a/b", 1);
  const Evidence evidence = collector.collect(killed(0));
  CHECK(evidence.oom_kills == 1);
  REQUIRE(evidence.groups.size() == 2);
  CHECK(evidence.groups[0] == MemoryGroup{"/a/b", 1, 67108864, 67108864, 4096});
  CHECK(evidence.groups[1] == MemoryGroup{"/a", 1, {}, {}, 8192});
}

TEST_CASE("one kill explains one SIGKILL: the next one was somebody else's") {
  Machine machine;
  machine.be_v2(0);
  EvidenceCollector collector(machine.roots());
  collector.begin();
  machine.be_v2(1);
  CHECK(collector.collect(killed(0, kSecond)).oom_kills == 1);
  CHECK(collector.collect(killed(1, kSecond + 1)).oom_kills == 0);
  machine.be_v2(3);  // two at once
  CHECK(collector.collect(killed(2, 2 * kSecond)).oom_kills == 2);
  CHECK(collector.collect(killed(3, 2 * kSecond)).oom_kills == 1);
  CHECK(collector.collect(killed(4, 2 * kSecond)).oom_kills == 0);
}

TEST_CASE("a process that exits sees the kill but leaves it to the one that was killed") {
  Machine machine;
  machine.be_v2(0);
  EvidenceCollector collector(machine.roots());
  collector.begin();
  machine.be_v2(1);
  CHECK(collector.collect(exited(0, kSecond)).oom_kills == 1);
  CHECK(collector.collect(killed(1, kSecond + 1000)).oom_kills == 1);
}

TEST_CASE("a kill that nobody took is not kept for a SIGKILL long after it") {
  Machine machine;
  machine.be_v2(0);
  EvidenceCollector collector(machine.roots());
  collector.begin();
  machine.be_v2(1);
  CHECK(collector.collect(exited(0, kSecond)).oom_kills == 1);
  CHECK(collector.collect(killed(1, 10 * kSecond)).oom_kills == 0);
  machine.be_v2(2);
  CHECK(collector.collect(killed(2, 20 * kSecond)).oom_kills == 1);
}

TEST_CASE("a process that has moved to another cgroup is judged by that one") {
  Machine machine;
  machine.file("proc/self/cgroup", "4:memory:/a\n");
  machine.be_v1("/a", 0);
  machine.be_v1("/own", 7);
  machine.file("proc/101/cgroup", "4:memory:/own\n");
  EvidenceCollector collector(machine.roots());
  collector.begin();
  collector.look(1, 101);
  collector.look(2, 102);  // has ended already
  machine.be_v1("/own", 8);
  CHECK(collector.collect(killed(2)).oom_kills == 0);
  const Evidence evidence = collector.collect(killed(1));
  CHECK(evidence.oom_kills == 1);
  CHECK(evidence.groups.front().path == "/own");
}

TEST_CASE(
    "a process that is ending, which cgroup v1 shows in its root group, is judged by the group it lived in") {
  Machine machine;
  machine.file("proc/self/cgroup", "4:memory:/a\n");
  machine.be_v1("", 0);
  machine.be_v1("/a", 0);
  machine.file("proc/101/cgroup", "4:memory:/\n");
  EvidenceCollector collector(machine.roots());
  collector.begin();
  machine.be_v1("/a", 1);
  collector.look(1, 101);
  CHECK(collector.collect(killed(1)).oom_kills == 1);
}

TEST_CASE("in a container the group is mounted as the root, whatever the host calls it") {
  Machine machine;
  machine.file("proc/self/cgroup", "4:memory:/docker/0123\n");
  machine.be_v1("", 0);
  EvidenceCollector collector(machine.roots());
  collector.begin();
  machine.be_v1("", 1);
  const Evidence evidence = collector.collect(killed(0));
  CHECK(evidence.oom_kills == 1);
  CHECK(evidence.groups.size() == 1);
}

TEST_CASE("v2 beside v1 is mounted at unified, and a group without memory is accounted for above") {
  Machine machine;
  machine.file("proc/self/cgroup", "1:cpu:/\n0::/job/leaf\n");
  machine.file("cgroup/unified/cgroup.procs", "");
  machine.file("cgroup/unified/job/leaf/cgroup.procs", "");
  machine.file("cgroup/unified/job/memory.events", "oom_kill 0\n");
  EvidenceCollector collector(machine.roots());
  collector.begin();
  machine.file("cgroup/unified/job/memory.events", "oom_kill 1\n");
  CHECK(collector.collect(killed(0)).oom_kills == 1);
}

TEST_CASE("without cgroups the machine's counter is noted and nothing claimed") {
  Machine machine;
  EvidenceCollector collector(machine.roots());
  collector.begin();
  machine.file("proc/vmstat", "oom_kill 7\n");
  const Evidence evidence = collector.collect(killed(0));
  CHECK_FALSE(evidence.memory_counters);
  CHECK(evidence.oom_kills == 0);
  CHECK(evidence.machine_oom_kills == 2);
}

TEST_CASE("kills that are another process's do not count for the machine any more") {
  Machine machine;
  machine.be_v2(0);
  EvidenceCollector collector(machine.roots());
  collector.begin();
  machine.be_v2(1);
  machine.file("proc/vmstat", "oom_kill 6\n");
  collector.note(killed(0));
  CHECK(collector.collect(killed(0)).machine_oom_kills == 1);
  collector.note(killed(1));
  CHECK(collector.collect(killed(1)).oom_kills == 0);
  CHECK(collector.collect(killed(1)).machine_oom_kills == 0);
}

TEST_CASE("a machine without anything to read is no error") {
  tests::TempDir dir;
  EvidenceCollector collector({dir.file("none"), dir.file("none"), dir.file("none")});
  collector.begin();
  collector.look(0, 1);
  CHECK_FALSE(collector.collect(killed(0)).memory_counters);
}

TEST_CASE("a core file is found by its pattern, a program that took it by its name") {
  Machine machine;
  Death death = killed(0);
  death.reason = {ExitReason::Kind::signaled, SIGSEGV, true};
  death.cwd = machine.dir.file("work");
  machine.file("work/core.train.100", "");
  CHECK(EvidenceCollector(machine.roots()).collect(death).core == machine.dir.file("work/core.train.100"));
  machine.file("proc/sys/kernel/core_pattern", "core\n");
  machine.file("work/core.100", "");
  CHECK(EvidenceCollector(machine.roots()).collect(death).core == machine.dir.file("work/core.100"));
  machine.file("proc/sys/kernel/core_pattern", "|/usr/lib/systemd/systemd-coredump %P %u\n");
  CHECK(EvidenceCollector(machine.roots()).collect(death).core ==
        "handed to /usr/lib/systemd/systemd-coredump");
  death.reason.core_dumped = false;
  CHECK(EvidenceCollector(machine.roots()).collect(death).core.empty());
}

TEST_CASE("the end of the log is read from where the process's own output begins") {
  Machine machine;
  Death death = exited(0);
  death.log_path = machine.dir.write("workerlog.0", "error: old run\nerror: own\n");
  death.log_start = 15;
  death.log_shown = "log/workerlog.0";
  const Evidence evidence = EvidenceCollector(machine.roots()).collect(death);
  REQUIRE(evidence.text.has_value());
  CHECK(evidence.text->summary == "error: own");
  CHECK(evidence.log == "log/workerlog.0");
}

TEST_CASE("the tail of a file begins with a whole line and never before its start") {
  tests::TempDir dir;
  const std::string path = dir.write("log", "one\ntwo\nthree\n");
  CHECK(log_tail(path, 0, 100) == "one\ntwo\nthree\n");
  CHECK(log_tail(path, 0, 8) == "three\n");
  CHECK(log_tail(path, 4, 100) == "two\nthree\n");
  CHECK(log_tail(path, 100, 100) == "one\ntwo\nthree\n");  // made anew by the process
  CHECK(log_tail(dir.file("none"), 0, 100).empty());
  CHECK(log_tail(dir.path().string(), 0, 100).empty());
  std::filesystem::create_symlink(path, dir.path() / "link");
  CHECK(log_tail(dir.file("link"), 0, 100).empty());
}
