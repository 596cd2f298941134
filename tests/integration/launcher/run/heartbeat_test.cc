#include "launcher/run/heartbeat.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

bool say(int fd, const std::string& text) {
  return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

TEST_CASE("what a process says is there when fleetrun looks, also after the process's end") {
  Heartbeats heartbeats(2);
  const int fd = heartbeats.open(1);
  REQUIRE(fd >= 0);
  CHECK(heartbeats.read(1) == Heartbeat{});
  const pid_t child = ::fork();
  if (child == 0) ::_exit(say(fd, "step 1\n") && say(fd, "step 2 0.5\n") ? 0 : 1);
  heartbeats.started(1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(heartbeats.read(1) == Heartbeat{2, 2, 0.5});
  CHECK(heartbeats.read(1) == Heartbeat{2, 2, 0.5});
  CHECK(heartbeats.read(0) == Heartbeat{});
}

TEST_CASE("a full channel drops what is said and never blocks; read, it takes more") {
  Heartbeats heartbeats(1);
  const int fd = heartbeats.open(0);
  REQUIRE(fd >= 0);
  REQUIRE((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  const std::string beats(4096, '\n');
  int taken = 0;
  while (say(fd, beats) && taken < 10'000) ++taken;
  CHECK(errno == EAGAIN);
  CHECK(taken > 0);
  CHECK(taken < 10'000);
  CHECK(heartbeats.read(0).beats == static_cast<std::uint64_t>(taken) * beats.size());
  CHECK(say(fd, "step 7\n"));
  CHECK(heartbeats.read(0).step == 7);
}

TEST_CASE("a process whose fleetrun is gone gets no SIGPIPE") {
  auto heartbeats = std::make_unique<Heartbeats>(1);
  const UniqueFd fd(::fcntl(heartbeats->open(0), F_DUPFD_CLOEXEC, 3));
  heartbeats.reset();
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    ::_exit(say(fd.value(), "beat\n") ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a language that knows no descriptors opens it by its path") {
  Heartbeats heartbeats(1);
  const int fd = heartbeats.open(0);
  const std::string script = "echo step 3 > /proc/self/fd/9";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(fd, 9);
    ::execl("/bin/sh", "sh", "-c", script.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(heartbeats.read(0).step == 3);
}

TEST_CASE("a process that is started again has a channel of its own") {
  Heartbeats heartbeats(1);
  const UniqueFd first(::fcntl(heartbeats.open(0), F_DUPFD_CLOEXEC, 3));
  REQUIRE(say(first.value(), "step 100\n"));
  CHECK(heartbeats.read(0).step == 100);
  const int second = heartbeats.open(0);
  CHECK(say(first.value(), "step 101\n"));  // a survivor of the first attempt is not heard
  CHECK(heartbeats.read(0) == Heartbeat{});
  CHECK(say(second, "step 5\n"));
  CHECK(heartbeats.read(0).step == 5);
}
