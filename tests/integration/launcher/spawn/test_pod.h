// A pod for tests: all its frames, what its processes write, and deadlines for everything.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "launcher/spawn/process_spawner.h"
#include "runtime/base/environ.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

constexpr std::chrono::seconds kPodDeadline{30};

/// A pod with all its frames, and a pipe that its processes have as their standard output.
class TestPod final : public PodListener {
 public:
  explicit TestPod(SetupFrame setup = {}, const std::string& init = own_init()) {
    setup.pod_name = "testit";
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
    pod_ = start_pod(loop_, {.program = init, .setup = setup}, *this);
  }

  static std::string own_init() { return Environ::of_process().value_or("FLEETRUN_INIT", ""); }

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

  /// Runs the loop until another frame has come.
  Frame await_any() {
    const auto deadline = std::chrono::steady_clock::now() + kPodDeadline;
    while (seen_ == frames_.size()) {
      REQUIRE_FALSE(lost_);
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      loop_.run_one_for(std::chrono::milliseconds(100));
    }
    return frames_[seen_++];
  }

  /// The same, for the next frame of one type.
  template <class Wanted>
  Wanted await() {
    for (;;) {
      const Frame frame = await_any();
      if (const auto* wanted = std::get_if<Wanted>(&frame)) return *wanted;
    }
  }

  /// Runs the loop until the pod is lost.
  void await_loss() {
    const auto deadline = std::chrono::steady_clock::now() + kPodDeadline;
    while (!lost_) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      loop_.run_one_for(std::chrono::milliseconds(100));
    }
  }

  /// The next line that a process wrote.
  std::string read_line() {
    const auto deadline = std::chrono::steady_clock::now() + kPodDeadline;
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

  /// Has a process written something that was not read?
  bool has_line() const {
    pollfd ready = {read_end_.value(), POLLIN, 0};
    return ::poll(&ready, 1, 0) == 1;
  }

  void finish() {
    pod_->finish(false);
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

inline bool exists(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

/// A script that leaves a process in a session of its own behind, which ignores SIGTERM, says its pid, and
/// goes on with `then`. What it would say about a child of its own that was killed before it is nobody's.
inline std::string leaving(const std::string& then) {
  return "setsid sh -c 'exec 2>/dev/null; trap \"\" TERM; echo $$; while :; do sleep 100; done' & " + then;
}

}  // namespace fleetrun::launcher
