#include "runtime/trainer/heartbeat.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>

#include "runtime/base/text.h"

namespace fleetrun::runtime {
namespace {

constexpr std::chrono::milliseconds kInterval{50};

/// A pipe that does not block, as fleetrun makes them.
bool is_channel(int fd) noexcept {
  struct stat info = {};
  const int flags = ::fcntl(fd, F_GETFL);
  return flags != -1 && (flags & O_NONBLOCK) != 0 && (flags & O_ACCMODE) != O_RDONLY &&
         ::fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

}  // namespace

Heartbeat::Heartbeat(const Environ& environ) {
  const auto number = parse_integer(environ.value_or("FLEETRUN_HEARTBEAT_FD", ""));
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) return;
  if (is_channel(static_cast<int>(*number))) fd_ = static_cast<int>(*number);
}

void Heartbeat::beat() noexcept {
  if (fd_ < 0) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  auto due = due_.load(std::memory_order_relaxed);
  const auto next = std::chrono::duration_cast<std::chrono::steady_clock::duration>(now + kInterval).count();
  if (now.count() < due || !due_.compare_exchange_strong(due, next, std::memory_order_relaxed)) return;
  constexpr char kBeat[] = "beat\n";
  (void)!::write(fd_, kBeat, sizeof kBeat - 1);
}

}  // namespace fleetrun::runtime
