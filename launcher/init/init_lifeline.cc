#include "launcher/init/init_lifeline.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"

namespace fleetrun::launcher {

bool InitLifeline::receive() {
  char bytes[16384];
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  iovec part = {bytes, sizeof bytes};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      descriptors_.emplace_back(fd);
    }
  }
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
