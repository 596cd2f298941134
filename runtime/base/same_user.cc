#include "runtime/base/same_user.h"

#include <sys/socket.h>
#include <unistd.h>

namespace fleetrun {

bool is_same_user(int socket) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace fleetrun
