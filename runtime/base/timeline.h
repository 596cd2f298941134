// A timeline of one process: a file of spans, in tracks, that Perfetto and chrome://tracing open. It is
// written while the process works, so that one that is killed leaves what it did until then.
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
  /// Ends the file; tracks write nothing any more. Throws: Error(host) when not all of it could be written.
  void close();

 private:
  friend class Track;
  Timeline(UniqueFd file, std::string path, const std::string& process);
  /// The number of a new track.
  int begin_track(std::string_view name);
  /// Whole lines.
  void write(std::string_view text) noexcept;
  void write_locked(std::string_view text) noexcept;

  const std::string path_;
  const TimelineClock::time_point start_;
  std::mutex mutex_;  // guards what follows
  UniqueFd file_;
  int tracks_ = 0;
  bool has_failed_ = false;
};

/// The spans of one thread. Without a timeline nothing is drawn. Threads: one at a time.
class Track {
 public:
  /// What is behind it is left out.
  static constexpr std::size_t kMaxSpans = 2'000'000;

  Track() = default;
  Track(std::shared_ptr<Timeline> timeline, std::string_view name);
  Track(Track&&) = default;
  Track& operator=(Track&&) = delete;
  ~Track() { flush(); }

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
  std::size_t spans_ = 0;
  std::string text_;
  TimelineClock::time_point flushed_{};
};

/// A span from here to the end of the block. `track` may be null.
class Span {
 public:
  Span(Track* track, std::string_view name, std::string_view category)
      : track_(track != nullptr && track->is_drawn() ? track : nullptr), name_(name), category_(category) {
    if (track_ != nullptr) from_ = TimelineClock::now();
  }
  ~Span() {
    if (track_ != nullptr) track_->add(name_, category_, from_, TimelineClock::now());
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Track* track_;
  std::string_view name_, category_;
  TimelineClock::time_point from_{};
};

}  // namespace fleetrun
