// Whose process is at the other end of a unix socket.
#pragma once

namespace fleetrun {

/// Whether it runs as this process's user, as the kernel says. At the end that connected: who listens.
bool is_same_user(int socket) noexcept;

}  // namespace fleetrun
