#include "launcher/ui/log_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kStep = 256, kBlock = std::size_t{1} << 18, kLongest = 65'536;

std::size_t read_at(int fd, std::vector<char>& block, off_t offset, std::size_t max) {
  const ssize_t count = ::pread(fd, block.data(), std::min(block.size(), max), offset);
  return static_cast<std::size_t>(std::max<ssize_t>(count, 0));
}

}  // namespace

int open_own_log(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info = {};
  if (!file || ::fstat(file.value(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid())
    return -1;
  return file.release();
}

bool LogLines::look(std::size_t& budget) {
  const UniqueFd file(open_own_log(path_));
  struct stat info = {};
  if (!file || ::fstat(file.value(), &info) != 0) {
    *this = LogLines(path_);
    return true;
  }
  if (info.st_dev != device_ || info.st_ino != inode_ || info.st_size < looked_) *this = LogLines(path_);
  device_ = info.st_dev;
  inode_ = info.st_ino;
  std::vector<char> block(std::min<std::size_t>(kBlock, static_cast<std::size_t>(info.st_size - looked_)));
  while (looked_ < info.st_size && budget > 0) {
    const std::size_t count = read_at(file.value(), block, looked_, budget);
    if (count == 0) break;
    const char* const end = block.data() + count;
    for (const char* at = block.data(); at < end;) {
      const void* const newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
      is_open_line_ = newline == nullptr;
      if (is_open_line_) break;
      at = static_cast<const char*>(newline) + 1;
      if (++lines_ % kStep == 0) marks_.push_back(looked_ + (at - block.data()));
    }
    looked_ += static_cast<off_t>(count);
    budget -= count;
  }
  return looked_ >= info.st_size;
}

void LogLines::each(std::size_t first, std::size_t last,
                    const std::function<bool(std::size_t, std::string_view)>& take) const {
  last = std::min(last, count());
  if (first >= last) return;
  const UniqueFd file(open_own_log(path_));
  if (!file) return;
  std::vector<char> block(kBlock);
  off_t offset = marks_[first / kStep];
  std::size_t number = first / kStep * kStep;
  std::string line;  // what has been read of it
  while (offset < looked_) {
    const std::size_t count =
        read_at(file.value(), block, offset, static_cast<std::size_t>(looked_ - offset));
    if (count == 0) break;
    offset += static_cast<off_t>(count);
    std::string_view rest(block.data(), count);
    while (!rest.empty()) {
      const std::size_t length = rest.find('\n');
      if (number >= first)
        line.append(rest.substr(0, std::min(length, kLongest - std::min(line.size(), kLongest))));
      if (length == rest.npos) break;
      rest.remove_prefix(length + 1);
      if (number >= first && !take(number, line)) return;
      line.clear();
      if (++number >= last) return;
    }
  }
  if (number >= first) take(number, line);
}

std::vector<std::string> new_lines(const std::string& path, off_t& offset, std::size_t max_bytes,
                                   bool is_over) {
  const UniqueFd file(open_own_log(path));
  struct stat info = {};
  if (!file || ::fstat(file.value(), &info) != 0) return {};
  if (info.st_size < offset) offset = 0;  // it was cut
  std::vector<char> block(std::min(max_bytes, static_cast<std::size_t>(info.st_size - offset)));
  std::string_view text(block.data(), read_at(file.value(), block, offset, max_bytes));
  const std::size_t end = text.rfind('\n');
  if (text.empty() || (end == text.npos && text.size() < max_bytes && !is_over)) return {};
  if (end != text.npos) text = text.substr(0, end);
  offset += static_cast<off_t>(text.size() + (end == text.npos ? 0 : 1));
  return text.empty() ? std::vector<std::string>(1) : split(text, '\n');
}

}  // namespace fleetrun::launcher
