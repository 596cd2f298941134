#include "runtime/base/timeline.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/own_file.h"

namespace fleetrun {

namespace {

constexpr std::size_t kFullBuffer = 64 * 1024;
constexpr std::chrono::milliseconds kLongest{
    100};  // between two writes, for who looks on or kills the process
constexpr const char* kHint = "name a folder that is there, with space left";

Error not_written(const std::string& path, int error) {
  return Error(ErrorKind::host,
               "the timeline could not be written to " + path +
                   (error == 0 ? "" : std::string(": ") + std::strerror(error)),
               kHint);
}

double microseconds(TimelineClock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace

std::shared_ptr<Timeline> Timeline::create(const std::string& folder, const std::string& stem,
                                           const std::string& process) {
  std::error_code ignored;  // opening says more
  std::filesystem::create_directories(folder, ignored);
  for (int number = 1;; ++number) {
    std::string path = folder + "/" + stem + "-" + std::to_string(number) + ".json";
    UniqueFd file(open_own(path, O_WRONLY | O_CREAT | O_EXCL, Readers::by_directory));
    if (file) return std::shared_ptr<Timeline>(new Timeline(std::move(file), std::move(path), process));
    if (errno != EEXIST) throw not_written(path, errno);
  }
}

Timeline::Timeline(UniqueFd file, std::string path, const std::string& process)
    : path_(std::move(path)), start_(TimelineClock::now()), file_(std::move(file)) {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const auto start = std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count();
  write_locked(R"({"displayTimeUnit": "ms", "otherData": {"process": ")" + process + R"(", "start_us": )" +
               std::to_string(start) + R"(}, "traceEvents": [)" + "\n" +
               R"({"name": "process_name", "ph": "M", "pid": 1, "args": {"name": ")" + process + R"("}})");
}

Timeline::~Timeline() {
  try {
    close();
  } catch (const Error&) {
    // Nobody is left to be told.
  }
}

void Timeline::close() {
  const std::lock_guard lock(mutex_);
  if (!file_) return;
  write_locked("\n]}\n");
  file_.reset();
  if (has_failed_) throw not_written(path_, 0);
}

int Timeline::begin_track(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const int number = ++tracks_;
  write_locked(
      ",\n"
      R"({"name": "thread_name", "ph": "M", "pid": 1, "tid": )" +
      std::to_string(number) + R"(, "args": {"name": ")" + std::string(name) + R"("}})");
  return number;
}

void Timeline::write(std::string_view text) noexcept {
  const std::lock_guard lock(mutex_);
  write_locked(text);
}

void Timeline::write_locked(std::string_view text) noexcept {
  while (file_ && !text.empty()) {
    const ssize_t count = ::write(file_.value(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      has_failed_ = true;
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

Track::Track(std::shared_ptr<Timeline> timeline, std::string_view name)
    : timeline_(std::move(timeline)), flushed_(TimelineClock::now()) {
  if (timeline_) number_ = timeline_->begin_track(name);
}

void Track::add(std::string_view name, std::string_view category, TimelineClock::time_point from,
                TimelineClock::time_point to) {
  if (!timeline_ || spans_ >= kMaxSpans) return;
  ++spans_;
  char figures[120];
  std::snprintf(figures, sizeof figures, R"(", "ph": "X", "ts": %.3f, "dur": %.3f, "pid": 1, "tid": %d})",
                microseconds(from - timeline_->start_), microseconds(to - from), number_);
  text_
      .append(
          ",\n"
          R"({"name": ")")
      .append(name)
      .append(R"(", "cat": ")")
      .append(category)
      .append(figures);
  if (text_.size() >= kFullBuffer || to - flushed_ >= kLongest) flush();
}

void Track::flush() noexcept {
  if (!timeline_ || text_.empty()) return;
  timeline_->write(text_);
  text_.clear();
  flushed_ = TimelineClock::now();
}

}  // namespace fleetrun
