#include "launcher/failure/cause.h"

#include <cerrno>
#include <csignal>

#include <doctest/doctest.h>

#include "launcher/failure/evidence.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

constexpr std::uint64_t kMib = 1 << 20;

ExitReason code(int number) {
  return {ExitReason::Kind::exited, number, false};
}

ExitReason by_signal(int number) {
  return {ExitReason::Kind::signaled, number, false};
}

Evidence limited_group() {
  Evidence evidence;
  evidence.memory_counters = true;
  evidence.groups = {{"/jobs/a", 1, {}, 60 * kMib, 3 * kMib}, {"/jobs", 1, 64 * kMib, 64 * kMib, 5 * kMib}};
  return evidence;
}

}  // namespace

TEST_CASE("a SIGKILL is out of memory only when a kill was counted, and then has its numbers") {
  Evidence evidence = limited_group();
  Cause cause = explain(evidence, by_signal(SIGKILL));
  CHECK(cause.kind == FailureKind::crash);
  CHECK(
      cause.text ==
      "was killed by SIGKILL, sender unknown; memory was not the reason: no out-of-memory kill was counted");

  evidence.oom_kills = 1;
  evidence.peak_rss = 60 * kMib;
  cause = explain(evidence, by_signal(SIGKILL));
  CHECK(cause.kind == FailureKind::out_of_memory);
  CHECK(cause.text ==
        "was killed by SIGKILL: out of memory, cgroup /jobs: limit 64.0 MiB, peak 64.0 MiB, in use 5.0 MiB");
  CHECK(cause.detail.find("most memory that it had: 60.0 MiB") != std::string::npos);
  CHECK(cause.hint == "raise that limit, start fewer processes here, or make their batches smaller");

  evidence.oom_kills = 0;
  evidence.machine_oom_kills = 2;
  CHECK(explain(evidence, by_signal(SIGKILL))
            .text.ends_with(
                "no out-of-memory kill was counted in its cgroup, though 2 elsewhere on this machine"));

  evidence.oom_kills = 1;
  evidence.groups.clear();
  CHECK(explain(evidence, by_signal(SIGKILL)).text ==
        "was killed by SIGKILL: out of memory, the machine had none left");
}

TEST_CASE("without counters of the cgroup nothing is claimed") {
  Evidence evidence;
  evidence.machine_oom_kills = 2;
  const Cause cause = explain(evidence, by_signal(SIGKILL));
  CHECK(cause.kind == FailureKind::crash);
  CHECK(cause.text.find("it is unknown") != std::string::npos);
}

TEST_CASE("a kill of something below the process explains its exit") {
  Evidence evidence = limited_group();
  evidence.oom_kills = 1;
  const Cause cause = explain(evidence, code(1));
  CHECK(cause.kind == FailureKind::out_of_memory);
  CHECK(cause.text.ends_with("the kernel killed a process beside it or below it"));
  CHECK(explain(evidence, code(0)).kind == FailureKind::crash);
}

TEST_CASE("preemption is exit code 75 or a SIGTERM from elsewhere") {
  CHECK(explain({}, code(75)).kind == FailureKind::preemption);
  const Cause cause = explain({}, by_signal(SIGTERM));
  CHECK(cause.kind == FailureKind::preemption);
  CHECK(cause.text == "was killed by SIGTERM, which fleetrun did not send; sender unknown");
  Evidence ours;
  ours.sent_signal = SIGTERM;
  CHECK(explain(ours, by_signal(SIGTERM)).kind == FailureKind::crash);
  CHECK(explain(ours, by_signal(SIGTERM)).text == "was killed by SIGTERM, sent by fleetrun");
}

TEST_CASE("a hang is what fleetrun ended for it") {
  Evidence evidence;
  evidence.hung = true;
  evidence.sent_signal = SIGABRT;
  const Cause cause = explain(evidence, by_signal(SIGABRT));
  CHECK(cause.kind == FailureKind::hang);
  CHECK(cause.text == "hung, and was killed by SIGABRT, sent by fleetrun");
  evidence.hang_why = "sent no heartbeat for 30 s";
  CHECK(explain(evidence, by_signal(SIGABRT)).text ==
        "hung (it sent no heartbeat for 30 s), and was killed by SIGABRT, sent by fleetrun");
}

TEST_CASE("SIGBUS with a full /dev/shm says so") {
  Evidence evidence;
  evidence.shared_memory_total = 64 * kMib;
  evidence.shared_memory_available = 0;
  CHECK(explain(evidence, by_signal(SIGBUS)).text ==
        "was killed by SIGBUS: /dev/shm is full, 0 B of 64.0 MiB free");
  evidence.shared_memory_available = 32 * kMib;
  const Cause cause = explain(evidence, by_signal(SIGBUS));
  CHECK(cause.text == "was killed by SIGBUS");
  CHECK(cause.detail == "/dev/shm has 32.0 MiB of 64.0 MiB free\n");
}

TEST_CASE("signals of limits and machines are decoded") {
  Evidence evidence;
  evidence.file_size_limit = 1024;
  CHECK(explain(evidence, by_signal(SIGXFSZ)).text ==
        "was killed by SIGXFSZ: a file grew beyond the limit (1024, ulimit -f)");
  CHECK(explain({}, by_signal(SIGXCPU)).text ==
        "was killed by SIGXCPU: it used more seconds of CPU than the limit (one that it set itself)");
  CHECK(explain({}, by_signal(SIGPIPE)).text ==
        "was killed by SIGPIPE: it wrote to a pipe or socket whose reader was gone");
  CHECK_FALSE(explain({}, by_signal(SIGILL)).hint.empty());
}

TEST_CASE("every exit code and signal is named, and has a signature of its own") {
  std::string last;
  for (int number = 1; number < 256; ++number) {
    const Cause cause = explain({}, code(number));
    CHECK(cause.text.starts_with("exited with " + std::to_string(number)));
    CHECK(cause.signature != last);
    last = cause.signature;
  }
  for (int number = 1; number < 65; ++number)
    CHECK(explain({}, by_signal(number)).text.starts_with("was killed by " + signal_name(number)));
}

TEST_CASE("what exits with 1 and says nothing that is known is told with its last line") {
  Evidence evidence;
  evidence.last_line = "the data of day 7 are empty";  // sys.exit("the data of day 7 are empty")
  const Cause cause = explain(evidence, code(1));
  CHECK(cause.text == "exited with 1; its last line: the data of day 7 are empty");
  CHECK(cause.signature == "exit 1");
  CHECK(explain(evidence, code(3)).text == "exited with 3");
  CHECK(explain(evidence, code(0)).text == "exited with 0");
  CHECK(explain(evidence, by_signal(SIGABRT)).text == "was killed by SIGABRT");
  evidence.log_device_total = evidence.log_device_available = 0;
  CHECK(explain(evidence, code(1)).text.find("last line") == std::string::npos);
}

TEST_CASE("what the log says explains an exit and an abort, but not a kill from outside") {
  Evidence evidence;
  evidence.text =
      FailureText{FailureFamily::python, "ValueError: x", "block\n", "python ValueError: x @ a.py:f"};
  Cause cause = explain(evidence, code(1));
  CHECK(cause.text == "exited with 1: ValueError: x");
  CHECK(cause.signature == "python ValueError: x @ a.py:f");
  CHECK(cause.block == "block\n");
  CHECK(explain(evidence, by_signal(SIGABRT)).text == "was killed by SIGABRT: ValueError: x");
  CHECK(explain(evidence, by_signal(SIGTERM)).text.find("ValueError") == std::string::npos);
  evidence.sent_signal = SIGTERM;
  CHECK(explain(evidence, by_signal(SIGTERM)).text == "was killed by SIGTERM, sent by fleetrun");
  evidence.text->at_end = true;
  cause = explain(evidence, by_signal(SIGTERM));
  CHECK(cause.text ==
        "failed, and was killed by SIGTERM, sent by fleetrun, before it had ended: ValueError: x");
  CHECK(cause.signature == "python ValueError: x @ a.py:f");
  evidence.text->summary = "OSError: [Errno 98] Address already in use";
  CHECK(explain(evidence, code(1)).hint.find("port") != std::string::npos);
  evidence.core = "/x/core.7";
  CHECK(explain(evidence, {ExitReason::Kind::signaled, SIGSEGV, true}).detail == "core: /x/core.7\n");
}

TEST_CASE("a module that this package has, or stands for, is missing: the way to it is named") {
  const auto hint = [](const char* summary) {
    Evidence evidence;
    evidence.text = FailureText{FailureFamily::python, summary, "", ""};
    return explain(evidence, code(1)).hint;
  };
  for (const char* summary : {"ModuleNotFoundError: No module named 'paddle'",
                              "ModuleNotFoundError: No module named 'paddle.fluid'"})
    CHECK(hint(summary) ==
          "fleetrun --compat=paddle runs it without Paddle; or install Paddle for the script's Python");
  CHECK(hint("ModuleNotFoundError: No module named 'fleetrun.fluid'").find("stands in its way") !=
        std::string::npos);
  CHECK(hint("ModuleNotFoundError: No module named 'paddle2onnx'").empty());
  CHECK(hint("ModuleNotFoundError: No module named 'six'").empty());
}

TEST_CASE("a process that ran out of memory by itself is told with its limit") {
  Evidence evidence;
  evidence.text = FailureText{FailureFamily::python, "MemoryError", "", "python MemoryError @ a.py:f"};
  evidence.text->out_of_memory = true;
  evidence.address_space_limit = 64 * kMib;
  evidence.peak_rss = 30 * kMib;
  const Cause cause = explain(evidence, code(1));
  CHECK(cause.kind == FailureKind::crash);  // no kill was counted
  CHECK(cause.detail ==
        "most memory that it had: 30.0 MiB\nits limit of address space is 64.0 MiB (ulimit -v)\n");
  CHECK_FALSE(cause.hint.empty());
}

TEST_CASE("a program that could not be started is told with the step and errno") {
  const Cause cause = explain_start("/bin/x", "exec", EACCES);
  CHECK(cause.kind == FailureKind::not_started);
  CHECK(cause.text == "could not be started: /bin/x: Permission denied (exec)");
  CHECK(explain_start("/x", "exec", ENOENT)
            .hint.find("interpreter that is not (one from Windows ends in a CR") != std::string::npos);
  CHECK(explain_start("/x", "exec", ENOEXEC).hint.find("#!") != std::string::npos);
  CHECK(explain_start("/x", "exec", E2BIG).hint.find("shorten") != std::string::npos);
  CHECK(explain_start("/x", "fork", EAGAIN).hint.find("ulimit -u") != std::string::npos);
}

TEST_CASE("bytes are shown with a unit") {
  CHECK(shown_bytes(0) == "0 B");
  CHECK(shown_bytes(1023) == "1023 B");
  CHECK(shown_bytes(1024) == "1.0 KiB");
  CHECK(shown_bytes(1024 * 1024 - 1) == "1.0 MiB");
  CHECK(shown_bytes(3ull << 40) == "3.0 TiB");
}
