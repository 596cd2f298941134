// The descriptor must not be made non-blocking for everybody who shares it, so pipes and terminals are opened
// once more through /proc, sockets are sent to with MSG_DONTWAIT, and files do not block.
#include "launcher/logs/log_output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace fleetrun::launcher {

LogOutput::LogOutput(int output) {
  struct stat info = {};
  if (::fstat(output, &info) != 0) {
    gone_ = true;
    return;
  }
  is_socket_ = S_ISSOCK(info.st_mode);
  is_file_ = S_ISREG(info.st_mode);
  is_terminal_ = ::isatty(output) == 1;
  if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)) {
    const std::string again = "/proc/self/fd/" + std::to_string(output);
    fd_.reset(::open(again.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  if (!fd_) fd_.reset(::fcntl(output, F_DUPFD_CLOEXEC, 3));
  gone_ = !fd_;
}

std::size_t LogOutput::write(std::string_view bytes) noexcept {
  while (!gone_ && !bytes.empty()) {
    const ssize_t count = is_socket_
                              ? ::send(fd_.value(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                              : ::write(fd_.value(), bytes.data(), bytes.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EINTR) continue;
    if (errno == EAGAIN && !is_file_) return 0;
    problem_ = errno;
    gone_ = true;
  }
  return 0;
}

std::size_t LogOutput::columns() const noexcept {
  winsize size = {};
  if (::ioctl(fd_.value(), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace fleetrun::launcher
