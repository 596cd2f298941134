#include "runtime/base/same_user.h"

#include <unistd.h>

#include "runtime/base/defences.h"

namespace fleetrun {

std::optional<ucred> peer_of(int socket) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

bool is_same_user(int socket) noexcept {
  const std::optional<ucred> peer = peer_of(socket);
  return peer && (peer->uid == ::geteuid() || !defends("the other end's user"));
}

}  // namespace fleetrun
