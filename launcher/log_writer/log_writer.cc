// The rotated files are numbered without a gap, unless a writer was killed between two steps: then the next
// rotation fills the gap and removes nothing. Steps: remove the oldest (only where there is no gap), rename
// each by one, rename the file itself, make it anew, move its other names.
#include "launcher/log_writer/log_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "runtime/base/own_file.h"

namespace fleetrun::launcher {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100}, kLongestPause{5000};  // before a file is tried again
constexpr std::chrono::milliseconds kLookPause{500};  // between looks at whether it was deleted

/// A directory that belongs to this user or root.
UniqueFd open_own_directory(int parent, const std::string& name, mode_t mode) {
  if (::mkdirat(parent, name.c_str(), mode) != 0 && errno != EEXIST) return {};
  UniqueFd directory(::openat(parent, name.c_str(),
                              O_RDONLY | O_DIRECTORY | O_CLOEXEC | (parent == AT_FDCWD ? 0 : O_NOFOLLOW)));
  struct stat info = {};
  if (!directory || ::fstat(directory.value(), &info) != 0) return {};
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    errno = EPERM;
    return {};
  }
  return directory;
}

ino_t inode_at(int directory, const std::string& name) noexcept {
  struct stat info = {};
  return ::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_ino : 0;
}

}  // namespace

LogWriter::LogWriter(LogPlace place, LogLimits limits, std::function<void(std::string_view)> at_step)
    : place_(std::move(place)), limits_(limits), at_step_(std::move(at_step)) {}

void LogWriter::write(std::string_view bytes, Time now) {
  try {
    if (!prepare(now)) return drop(bytes);
    while (!bytes.empty()) {
      if (limits_.cap > 0 && size_ > 0 && fitting(bytes) == 0) {
        if (rotate()) continue;
      } else if (write_some(bytes)) {
        continue;
      }
      fail(errno, now);
      return drop(bytes);
    }
  } catch (const std::bad_alloc&) {
    drop(bytes);
  }
}

void LogWriter::finish(Time now) noexcept {
  if (untold_ == 0) return;
  retry_at_ = {};
  try {
    prepare(now);
  } catch (const std::bad_alloc&) {
  }
}

/// True when the file can be written to, as far as is known.
bool LogWriter::prepare(Time now) {
  if (error_ != 0 && now < retry_at_) return false;
  if (file_ && was_deleted(now)) file_.reset();
  if ((!file_ && !open_file()) || (untold_ > 0 && !say_what_was_dropped())) {
    fail(errno, now);
    return false;
  }
  error_ = 0;
  pause_ = {};
  return true;
}

bool LogWriter::open_directory() {
  top_ = open_own_directory(AT_FDCWD, place_.log_dir, 0755);
  if (!top_) return false;
  const UniqueFd pod = open_own_directory(top_.value(), place_.pod, 0700);
  if (!pod) return false;
  directory_ = open_own_directory(pod.value(), place_.attempt, 0700);
  return static_cast<bool>(directory_);
}

bool LogWriter::open_file() {
  struct stat info = {};
  if (!directory_ || ::fstat(directory_.value(), &info) != 0 || info.st_nlink == 0) {
    if (!open_directory()) return false;
  }
  const int flags = O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK;
  file_.reset(open_own_at(directory_.value(), place_.name, flags, Readers::owner));
  if (!file_ || ::fstat(file_.value(), &info) != 0) return false;
  if (!S_ISREG(info.st_mode)) {
    file_.reset();
    errno = EINVAL;
    return false;
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
  inode_ = info.st_ino;
  char last = '\n';
  line_is_open_ = size_ > 0 && ::pread(file_.value(), &last, 1, info.st_size - 1) == 1 && last != '\n';
  if (info.st_nlink == 1) link_names(inode_at(directory_.value(), part(1)));
  return true;
}

bool LogWriter::was_deleted(Time now) {
  if (now - looked_at_ < kLookPause) return false;
  looked_at_ = now;
  struct stat info = {};
  return ::fstat(file_.value(), &info) == 0 && info.st_nlink == 0;
}

/// How many of `bytes` go into the file: whole lines, where the file ends with one or a line ends in it.
std::size_t LogWriter::fitting(std::string_view bytes) const noexcept {
  if (limits_.cap == 0) return bytes.size();
  const std::uint64_t room = limits_.cap > size_ ? limits_.cap - size_ : 0;
  if (bytes.size() <= room) return bytes.size();
  const std::size_t newline = bytes.substr(0, static_cast<std::size_t>(room)).rfind('\n');
  if (newline != std::string_view::npos) return newline + 1;
  return size_ == 0 || line_is_open_ ? static_cast<std::size_t>(room) : 0;
}

bool LogWriter::write_some(std::string_view& bytes) {
  const std::string_view piece = bytes.substr(0, std::max<std::size_t>(fitting(bytes), 1));
  const ssize_t count = ::write(file_.value(), piece.data(), piece.size());
  if (count < 0 && errno == EINTR) return true;
  if (count == 0) errno = EIO;
  if (count <= 0) return false;
  const auto written = static_cast<std::size_t>(count);
  size_ += written;
  line_is_open_ = piece[written - 1] != '\n';
  bytes.remove_prefix(written);
  return true;
}

bool LogWriter::rotate() {
  if (!make_room()) return false;
  step("rename");
  const int directory = directory_.value();
  if (::renameat(directory, place_.name.c_str(), directory, part(1).c_str()) != 0) return false;
  const ino_t before = inode_;
  file_.reset();
  step("make");
  if (!open_file()) return false;
  step("link");
  link_names(before);
  step("done");
  return true;
}

/// Makes number 1 free.
bool LogWriter::make_room() {
  const int directory = directory_.value();
  int gap = 1;
  while (gap <= limits_.keep && inode_at(directory, part(gap)) != 0) ++gap;
  if (gap > limits_.keep) {
    gap = limits_.keep;
    struct stat oldest = {};
    step("remove");
    if (::fstatat(directory, part(gap).c_str(), &oldest, AT_SYMLINK_NOFOLLOW) == 0 &&
        ::unlinkat(directory, part(gap).c_str(), 0) == 0)
      removed_ += static_cast<std::uint64_t>(oldest.st_size);
  }
  for (int number = gap - 1; number >= 1; --number) {
    step("shift");
    if (::renameat(directory, part(number).c_str(), directory, part(number + 1).c_str()) != 0) return false;
  }
  return true;
}

/// Moves the other names from the file `before` to this one.
/// Names that lead elsewhere are those of a later attempt.
void LogWriter::link_names(ino_t before) noexcept {
  for (const std::string& name : place_.other_names) {
    const ino_t now = inode_at(top_.value(), name);
    if (now != 0 && now != before) continue;
    const std::string fresh = "." + name + "." + place_.pod;
    ::unlinkat(top_.value(), fresh.c_str(), 0);
    if (::linkat(directory_.value(), place_.name.c_str(), top_.value(), fresh.c_str(), 0) != 0) return;
    if (::renameat(top_.value(), fresh.c_str(), top_.value(), name.c_str()) != 0)
      ::unlinkat(top_.value(), fresh.c_str(), 0);
  }
}

bool LogWriter::say_what_was_dropped() noexcept {
  const std::string text = std::string(line_is_open_ ? "\n" : "") + "[fleetrun: " + std::to_string(untold_) +
                           " bytes dropped: " + std::generic_category().message(error_ == 0 ? EIO : error_) +
                           "]\n";
  const ssize_t count = ::write(file_.value(), text.data(), text.size());
  if (count != static_cast<ssize_t>(text.size())) {
    const int error = count < 0 ? errno : ENOSPC;
    if (count > 0) (void)!::ftruncate(file_.value(), static_cast<off_t>(size_));
    errno = error;
    return false;
  }
  size_ += text.size();
  line_is_open_ = false;
  untold_ = 0;
  lost_.clear();
  return true;
}

void LogWriter::fail(int error, Time now) noexcept {
  error_ = error == 0 ? EIO : error;
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  retry_at_ = now + pause_;
}

void LogWriter::drop(std::string_view bytes) noexcept {
  dropped_ += bytes.size();
  untold_ += bytes.size();
  try {
    lost_.append(bytes.substr(bytes.size() - std::min(bytes.size(), kKeptBytes)));
    if (lost_.size() > kKeptBytes) lost_.erase(0, lost_.size() - kKeptBytes);
  } catch (const std::bad_alloc&) {
    lost_.clear();
  }
}

void LogWriter::step(std::string_view name) const {
  if (at_step_) at_step_(name);
}

std::string LogWriter::part(int number) const {
  return place_.name + "." + std::to_string(number);
}

}  // namespace fleetrun::launcher
