// How long a pod runs without a word from its launcher: fleetrun-init decides.

#include <time.h>

#include <chrono>
#include <cstdint>

#include <doctest/doctest.h>

#include "launcher/init/process_table.h"
#include "tests/integration/launcher/spawn/test_pod.h"

using namespace fleetrun::launcher;

namespace {

constexpr std::int64_t kMillisecond = 1'000'000, kHour = 3'600'000 * kMillisecond;

std::int64_t in_ms(std::int64_t milliseconds) {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1000 * kMillisecond + now.tv_nsec + milliseconds * kMillisecond;
}

/// A signal is on its way for a moment.
bool comes_to(pid_t pid, bool still) {
  const auto deadline = std::chrono::steady_clock::now() + kPodDeadline;
  while ((state_of(pid).state == "T") != still) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace

TEST_CASE("a pod whose lease is over is killed, leftovers too, and can be used again") {
  TestPod pod;
  pod.start(0, leaving("exec sleep 100"));
  const auto left = static_cast<pid_t>(std::stol(pod.read_line()));
  pod->lease({.stands_ns = 0, .ends_ns = in_ms(20)});
  pod.await<LapsedFrame>();
  CHECK(pod.await<ExitedFrame>().wait_status == SIGKILL);
  pod->sweep();
  pod.await<SweptFrame>();
  CHECK_FALSE(exists(left));
  pod->lease({.stands_ns = 0, .ends_ns = in_ms(0) + kHour});
  pod.start(0, "exit 3");
  CHECK(pod.await<ExitedFrame>().wait_status == 3 << 8);
  pod.finish();
}

TEST_CASE("a pod stands still, whatever sessions it made, until a later lease comes") {
  TestPod pod;
  pod.start(0, leaving("echo $$; exec sleep 100"));
  const auto first = static_cast<pid_t>(std::stol(pod.read_line()));
  const auto second = static_cast<pid_t>(std::stol(pod.read_line()));
  pod->lease({.stands_ns = in_ms(20), .ends_ns = in_ms(0) + kHour});
  CHECK(pod.await<StandsFrame>().still);
  CHECK(comes_to(first, true));
  CHECK(comes_to(second, true));
  pod->lease({.stands_ns = in_ms(0) + kHour, .ends_ns = in_ms(0) + kHour});
  CHECK_FALSE(pod.await<StandsFrame>().still);
  CHECK(comes_to(first, false));
  CHECK(comes_to(second, false));
  pod.finish();
}

TEST_CASE("a lease that is put off, or lifted, ends nothing") {
  TestPod pod;
  pod.start(0, "echo started; exec sleep 100");
  pod.read_line();
  pod->lease({.stands_ns = 0, .ends_ns = in_ms(0) + kHour});
  pod->lease({.stands_ns = 0, .ends_ns = in_ms(40)});
  pod->lease({});
  pod->signal(0, SIGTERM, false);
  CHECK(pod.await<ExitedFrame>().wait_status == SIGTERM);
  for (const Frame& frame : pod.frames()) CHECK_FALSE(std::holds_alternative<LapsedFrame>(frame));
  pod.finish();
}
