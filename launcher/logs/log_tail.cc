#include "launcher/logs/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

std::string log_tail(const std::string& path, off_t start, std::size_t max_bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info = {};
  if (!fd || ::fstat(fd.value(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (info.st_size < start) start = 0;  // the process made its log anew
  const off_t begin = std::max(start, info.st_size - static_cast<off_t>(max_bytes));
  std::string text(static_cast<std::size_t>(info.st_size - begin), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t count =
        ::pread(fd.value(), text.data() + got, text.size() - got, begin + static_cast<off_t>(got));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  text.resize(got);
  const std::size_t line = text.find('\n');
  if (begin > start && line != std::string::npos && line + 1 < text.size()) text.erase(0, line + 1);
  return text;
}

}  // namespace fleetrun::launcher
