#include "launcher/spawn/process_spawner.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdio>
#include <map>

#include <doctest/doctest.h>

#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

struct Recorder final : PodListener {
  explicit Recorder(boost::asio::io_context& io) : loop(io) {}
  void on_frame(const Frame& frame) override {
    frames.push_back(frame);
    if (std::holds_alternative<StartedFrame>(frame) && on_started) on_started(std::get<StartedFrame>(frame));
    if (std::holds_alternative<ExitedFrame>(frame) || std::holds_alternative<FailedFrame>(frame)) ++ended;
    if (ended == expected && on_ended) on_ended();
    if (std::holds_alternative<EmptiedFrame>(frame)) loop.stop();
  }
  void on_lost() override {
    lost = true;
    loop.stop();
  }

  boost::asio::io_context& loop;
  std::vector<Frame> frames;
  std::function<void(const StartedFrame&)> on_started;
  std::function<void()> on_ended;
  int ended = 0, expected = -1;
  bool lost = false;
};

SetupFrame setup_of(const std::string& pod) {
  SetupFrame setup;
  setup.pod_name = pod;
  return setup;
}

ProcessSpec shell(const std::string& script) {
  ProcessSpec spec;
  spec.program = "/bin/sh";
  spec.argv = {"sh", "-c", script};
  return spec;
}

}  // namespace

TEST_CASE("exits, signals and exec errors of a pod come back as they are") {
  boost::asio::io_context loop;
  Recorder recorder(loop);
  const std::string init = Environ::of_process().value_or("FLEETRUN_INIT", "");
  REQUIRE_FALSE(init.empty());
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  auto pod = start_pod(loop, {.program = init, .setup = setup_of("testit")}, recorder);
  ProcessSpec missing = shell("");
  missing.program = "/nosuch/program";
  ProcessSpec misplaced = shell("exit 0");
  misplaced.program = "/etc/passwd";
  pod->start(0, shell("exit 3"), {.log_fd = null.value()});
  pod->start(1, missing, {.log_fd = null.value()});
  pod->start(2, shell("exec sleep 100"), {.log_fd = null.value()});
  pod->start(3, misplaced, {.log_fd = null.value()});
  recorder.on_started = [&](const StartedFrame& started) {
    if (started.index == 2) pod->signal(2, SIGTERM, true);
  };
  recorder.expected = 4;
  recorder.on_ended = [&] { pod->finish(false); };
  loop.run_for(std::chrono::seconds(20));
  CHECK_FALSE(recorder.lost);
  std::map<std::uint32_t, int> statuses;
  std::map<std::uint32_t, std::pair<std::string, int>> failures;
  for (const Frame& frame : recorder.frames) {
    if (const auto* exited = std::get_if<ExitedFrame>(&frame)) statuses[exited->index] = exited->wait_status;
    if (const auto* failed = std::get_if<FailedFrame>(&frame))
      failures[failed->index] = {failed->stage, failed->error};
  }
  CHECK(statuses == std::map<std::uint32_t, int>{{0, 3 << 8}, {2, SIGTERM}});
  CHECK(failures ==
        std::map<std::uint32_t, std::pair<std::string, int>>{{1, {"exec", ENOENT}}, {3, {"exec", EACCES}}});
}

TEST_CASE("an init that cannot be executed is an error, and its fork writes nothing of ours twice") {
  char path[] = "/tmp/fleetrun-spawn-test-XXXXXX";
  const int fd = ::mkstemp(path);
  REQUIRE(fd >= 0);
  std::FILE* buffered = ::fdopen(fd, "w");
  std::fputs("once", buffered);  // in the buffer while Boost.Process forks, and while the child's exec fails
  boost::asio::io_context loop;
  Recorder recorder(loop);
  CHECK_THROWS_WITH_AS(start_pod(loop, {.program = "/nosuch/init", .setup = {}}, recorder),
                       "fleetrun-init could not be started: /nosuch/init: No such file or directory", Error);
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
  std::fclose(buffered);
  struct stat info = {};
  CHECK(::stat(path, &info) == 0);
  CHECK(info.st_size == 4);
  ::unlink(path);
}

TEST_CASE("an init that ends on its own is a lost pod") {
  boost::asio::io_context loop;
  Recorder recorder(loop);
  auto pod = start_pod(loop, {.program = "/bin/false", .setup = {}}, recorder);
  loop.run_for(std::chrono::seconds(20));
  CHECK(recorder.lost);
}
