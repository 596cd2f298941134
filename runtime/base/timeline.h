// A timeline of one process: a file of bars, in lanes, that Perfetto and chrome://tracing open. It is written
// while the process works, so that one that is killed leaves what it did until then.
// `fleetrun trace merge` joins those of a job.
//
//   {"displayTimeUnit": "ms", "otherData": {"process": "trainer 0", "start_us": 1763791111123456},
//    "traceEvents": [
//   {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "trainer 0"}},
//   {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "thread 0"}},
//   {"name": "read", "cat": "stage", "ph": "X", "ts": 12.250, "dur": 8.000, "pid": 1, "tid": 1}
//   ]}
//
// One event a line. Times are microseconds since start_us, which is in microseconds since 1970; a file
// without its last line is that of a process which did not end by itself.
// Source: Trace Event Format, "complete events" and "metadata events".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/base/unique_fd.h"

namespace fleetrun {

using TimelineClock = std::chrono::steady_clock;

/// Threads: any.
class Timeline {
 public:
  /// A new file FOLDER/STEM-N.json with the first N from 1 that is not taken; the folder is made where it is
  /// not there. `process`: its name, as people read it. Throws: Error(host) when the file cannot be made.
  static std::shared_ptr<Timeline> create(const std::string& folder, const std::string& stem,
                                          const std::string& process);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// Ends the file; lanes write nothing any more. Throws: Error(host) when not all of it could be written.
  void close();

 private:
  friend class Lane;
  Timeline(UniqueFd file, std::string path, const std::string& process);
  /// The number of a new lane.
  int begin_lane(std::string_view name);
  /// Whole lines.
  void write(std::string_view text) noexcept;
  void write_locked(std::string_view text) noexcept;

  const std::string path_;
  const TimelineClock::time_point start_;
  std::mutex mutex_;  // guards what follows
  UniqueFd file_;
  int lanes_ = 0;
  bool has_failed_ = false;
};

/// The bars of one thread. Without a timeline nothing is drawn. Threads: one at a time.
class Lane {
 public:
  /// What is behind it is left out.
  static constexpr std::size_t kMaxBars = 2'000'000;

  Lane() = default;
  Lane(std::shared_ptr<Timeline> timeline, std::string_view name);
  Lane(Lane&&) = default;
  Lane& operator=(Lane&&) = delete;
  ~Lane() { flush(); }

  bool is_drawn() const noexcept { return timeline_ != nullptr; }
  const std::shared_ptr<Timeline>& timeline() const noexcept { return timeline_; }
  void add(std::string_view name, std::string_view category, TimelineClock::time_point from,
           TimelineClock::time_point to);
  /// Writes what was added: after a step, since a process that waits may be killed.
  /// Otherwise that is done now and then.
  void flush() noexcept;

 private:
  std::shared_ptr<Timeline> timeline_;
  int number_ = 0;
  std::size_t bars_ = 0;
  std::string text_;
  TimelineClock::time_point flushed_{};
};

/// A bar from here to the end of the block. `lane` may be null.
class Bar {
 public:
  Bar(Lane* lane, std::string_view name, std::string_view category)
      : lane_(lane != nullptr && lane->is_drawn() ? lane : nullptr), name_(name), category_(category) {
    if (lane_ != nullptr) from_ = TimelineClock::now();
  }
  ~Bar() {
    if (lane_ != nullptr) lane_->add(name_, category_, from_, TimelineClock::now());
  }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

 private:
  Lane* lane_;
  std::string_view name_, category_;
  TimelineClock::time_point from_{};
};

}  // namespace fleetrun
