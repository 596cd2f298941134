// Whose process is at the other end of a unix socket.
#pragma once

#include <sys/socket.h>

#include <optional>

namespace fleetrun {

/// As the kernel says; nullopt where it cannot. At the end that connected: who listens.
std::optional<ucred> peer_of(int socket) noexcept;
/// Whether it runs as this process's user.
bool is_same_user(int socket) noexcept;

}  // namespace fleetrun
