#include "launcher/init/init_lifeline.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/passed_files.h"

namespace fleetrun::launcher {

bool InitLifeline::receive() {
  char bytes[16384];
  auto [got, files] = receive_with_files(socket_, std::as_writable_bytes(std::span(bytes)), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  std::ranges::move(files, std::back_inserter(descriptors_));
  decoder_.append({bytes, static_cast<std::size_t>(got)});
  return got > 0;
}

UniqueFd InitLifeline::take_descriptor() {
  if (descriptors_.empty()) throw Error(ErrorKind::data, "a process was described without its descriptors");
  UniqueFd fd = std::move(descriptors_.front());
  descriptors_.pop_front();
  return fd;
}

void InitLifeline::abandon() {
  ::close(socket_);
  descriptors_.clear();
}

void InitLifeline::flush() {
  for (std::size_t sent = 0; sent < outgoing_.size();) {
    const ssize_t count = ::send(socket_, outgoing_.data() + sent, outgoing_.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;  // the end of the lifeline says so too
    sent += static_cast<std::size_t>(count);
  }
  outgoing_.clear();
}

}  // namespace fleetrun::launcher
