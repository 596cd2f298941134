#include "runtime/base/passed_files.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace fleetrun {

ssize_t send_with_files(int socket, std::span<const std::byte> bytes, std::span<const int> files) noexcept {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxPassedFiles * sizeof(int))] = {};
  iovec part = {const_cast<std::byte*>(bytes.data()), bytes.size()};  // which sendmsg() only reads
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (files.size() > kMaxPassedFiles) return errno = EINVAL, -1;
  if (!files.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(rights), files.data(), files.size_bytes());
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

WithFiles receive_with_files(int socket, std::span<std::byte> bytes, int flags) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxPassedFiles * sizeof(int))] = {};
  iovec part = {bytes.data(), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  WithFiles received{::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC), {}};
  if (received.count < 0) return received;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at < c->cmsg_len; at += sizeof(int)) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(c) + (at - CMSG_LEN(0)), sizeof file);
      received.files.emplace_back(file);
    }
  }
  return received;
}

}  // namespace fleetrun
