#include "launcher/host/resource_usage.h"

#include <unistd.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/support/temp_dir.h"

using namespace fleetrun::launcher;
using fleetrun::tests::TempDir;

namespace {

/// A line as the kernel writes it: 52 fields.
std::string line(int pid, const std::string& name, char state, int parent, int session, int user, int rss) {
  std::string text = std::to_string(pid) + " (" + name + ") " + state + " " + std::to_string(parent) + " " +
                     std::to_string(pid) + " " + std::to_string(session) + " 0 -1 4194560 100 0 0 0 " +
                     std::to_string(user) + " 20 3 -1 20 0 1 0 987654 1000000 " + std::to_string(rss);
  for (int i = 25; i <= 52; ++i) text += " 0";
  return text + "\n";
}

ProcStat process(pid_t pid, pid_t parent, pid_t session, std::uint64_t ticks, std::uint64_t pages) {
  ProcStat stat;
  stat.pid = pid;
  stat.parent = parent;
  stat.session = session;
  stat.state = 'S';
  stat.cpu_ticks = ticks;
  stat.rss_pages = pages;
  return stat;
}

const auto kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
const auto kTicks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));

}  // namespace

TEST_CASE("a line of /proc/PID/stat is read whatever the program is called") {
  for (const char* name : {"python3", "a b", "x) S 1 (y", "", "((", "new\nline"}) {
    const auto stat = parse_proc_stat(line(42, name, 'T', 7, 40, 100, 5));
    REQUIRE_MESSAGE(stat, name);
    CHECK(stat->pid == 42);
    CHECK(stat->parent == 7);
    CHECK(stat->session == 40);
    CHECK(stat->state == 'T');
    CHECK(stat->cpu_ticks == 100 + 20 + 3 - 1);
    CHECK(stat->start_ticks == 987654);
    CHECK(stat->rss_pages == 5);
  }
}

TEST_CASE("what is no such line is not read") {
  const std::string whole = line(42, "a", 'S', 7, 40, 100, 5);
  for (const std::string& text : {std::string(), std::string("42"), std::string("42 (a"), std::string(") ("),
                                  whole.substr(0, 30), std::string("x (a) S 1 2 3")})
    CHECK_MESSAGE(!parse_proc_stat(text), text);
}

TEST_CASE("a process is counted with its descendants and its session, and nobody else's") {
  const std::vector<ProcStat> processes = {
      process(1, 0, 1, 9999, 9999),        // the machine's own
      process(10, 1, 10, 2 * kTicks, 3),   // the first trainer
      process(11, 10, 10, 1 * kTicks, 4),  // its child
      process(12, 11, 12, 4 * kTicks, 5),  // a grandchild in a session of its own
      process(13, 1, 10, 8 * kTicks, 6),   // an orphan of its session
      process(20, 1, 20, 16 * kTicks, 7),  // the second trainer
      process(30, 1, 30, 32 * kTicks, 8),  // a stranger
  };
  const auto usage = sum_usage({10, 20, 77}, processes);
  CHECK(usage[0].cpu_seconds == 15);
  CHECK(usage[0].rss_bytes == 18 * kPage);
  CHECK(usage[0].processes == 4);
  CHECK(usage[0].state == 'S');
  CHECK(usage[1].cpu_seconds == 16);
  CHECK(usage[1].processes == 1);
  CHECK(usage[2] == ResourceUsage{});
}

TEST_CASE("parents in a circle do no harm") {
  const auto usage =
      sum_usage({10}, {process(5, 6, 5, 1, 1), process(6, 5, 6, 1, 1), process(10, 1, 10, kTicks, 1)});
  CHECK(usage[0].processes == 1);
}

TEST_CASE("/proc is read, and a process that ends meanwhile is left out") {
  const TempDir proc;
  for (const char* pid : {"10", "11", "12"}) std::filesystem::create_directory(proc.file(pid));
  proc.write("10/stat", line(10, "trainer", 'R', 1, 10, 100, 2));
  proc.write("11/stat", line(11, "loader", 'S', 10, 10, 100, 3));
  proc.write("meminfo", "not a process");
  const auto usage = read_usage({10}, proc.path().string());
  CHECK(usage[0].processes == 2);
  CHECK(usage[0].rss_bytes == 5 * kPage);
  CHECK(usage[0].state == 'R');
  CHECK(start_ticks_of(10, proc.path().string()) == 987654);
  CHECK(!start_ticks_of(12, proc.path().string()));
  proc.write("11/stat", line(11, "zombie", 'Z', 10, 10, 100, 3));
  CHECK(!start_ticks_of(11, proc.path().string()));
  CHECK(read_usage({10}, proc.file("none"))[0] == ResourceUsage{});
}

TEST_CASE("this process uses something") {
  const auto usage = read_usage({::getpid()});
  CHECK(usage[0].processes >= 1);
  CHECK(usage[0].rss_bytes > 0);
  CHECK(start_ticks_of(::getpid()));
}
