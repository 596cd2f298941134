// Leaving what another program, or another part of this one, has open.
#pragma once

namespace fleetrun {

/// Closes every descriptor from `first` on, by their list in /proc where the kernel (Linux before 5.9) or a
/// container has no close_range(). In a child of a process with threads, too.
void close_from(int first) noexcept;

}  // namespace fleetrun
