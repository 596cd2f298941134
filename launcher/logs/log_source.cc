// A file is known by device and inode. When its name leads to another one, it was rotated: its successor is
// the file whose number is one less, or the oldest that is left where it was deleted meanwhile.
#include "launcher/logs/log_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace fleetrun::launcher {
namespace {

constexpr int kMaxRotated = 1000;

std::string rotated(const std::string& path, int number) {
  return number == 0 ? path : path + "." + std::to_string(number);
}

}  // namespace

void LogSource::append(const std::string& path, off_t start) {
  later_.push_back({path, start});
  if (!file_) advance();
}

std::size_t LogSource::read(char* bytes, std::size_t max, off_t offset) const noexcept {
  const ssize_t count = file_ ? ::pread(file_.value(), bytes, max, offset) : 0;
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

bool LogSource::open(const Named& named, const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info = {};
  if (!file || ::fstat(file.value(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  file_ = std::move(file);
  device_ = info.st_dev;
  inode_ = info.st_ino;
  current_ = named;
  lines_ = LineSplitter(named.start);
  return true;
}

bool LogSource::advance() {
  if (file_) {
    const std::string next = successor();
    if (!next.empty() && open({current_.path, 0}, next)) return true;
  }
  while (!later_.empty()) {
    const Named named = later_.front();
    later_.pop_front();
    if (open(named, named.path)) return true;
  }
  return false;
}

bool LogSource::has_next() const {
  return !later_.empty() || (file_ && !successor().empty());
}

bool LogSource::restart_if_cut() {
  struct stat info = {};
  if (!file_ || ::fstat(file_.value(), &info) != 0 || info.st_size >= lines_.position()) return false;
  lines_ = LineSplitter(0);
  return true;
}

bool LogSource::was_replaced() const {
  struct stat info = {};
  if (::lstat(current_.path.c_str(), &info) != 0) return true;
  return info.st_ino != inode_ || info.st_dev != device_;
}

/// Path of the file to read after this one; empty: this is the newest. Asked until two answers agree, because
/// a rotation may be under way.
std::string LogSource::successor() const {
  if (!was_replaced()) return {};
  std::string answer = find_successor();
  for (int again = 0; again < 8; ++again) {
    std::string next = find_successor();
    if (next == answer) break;
    answer = std::move(next);
  }
  return answer;
}

std::string LogSource::find_successor() const {
  std::string newer;
  bool gap = false;  // between two steps of a rotation one number is missing
  for (int number = 0; number <= kMaxRotated; ++number) {
    struct stat info = {};
    const std::string path = rotated(current_.path, number);
    if (::lstat(path.c_str(), &info) != 0) {
      if (std::exchange(gap, true)) break;
      continue;
    }
    if (info.st_ino == inode_ && info.st_dev == device_) return newer;
    newer = path;
  }
  return newer;
}

off_t start_of_last_lines(const std::string& path, std::size_t lines, std::size_t max_bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) return 0;
  const off_t end = ::lseek(fd.value(), 0, SEEK_END);
  if (lines == 0) return end;
  const off_t min = std::max<off_t>(0, end - static_cast<off_t>(max_bytes));
  std::vector<char> block(64 * 1024);
  off_t first_line = end;  // of the lines that were seen whole
  std::size_t found = 0;
  for (off_t at = end; at > min;) {
    const off_t begin = std::max(min, at - static_cast<off_t>(block.size()));
    const ssize_t count = ::pread(fd.value(), block.data(), static_cast<std::size_t>(at - begin), begin);
    if (count != at - begin) return at;
    for (off_t i = count - 1; i >= 0; --i) {
      if (block[static_cast<std::size_t>(i)] != '\n' || begin + i == end - 1) continue;
      first_line = begin + i + 1;
      if (++found == lines) return first_line;
    }
    at = begin;
  }
  return min == 0 || found == 0 ? min : first_line;
}

}  // namespace fleetrun::launcher
