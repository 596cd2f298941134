// The end of a file that somebody else writes, read without waiting for anybody.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace fleetrun::launcher {

/// At most `max_bytes` of the end of the regular file `path`, not reaching back before `start`. Begins at
/// the beginning of a line where that is possible. Empty when there is no such file; symbolic links are not
/// followed.
std::string log_tail(const std::string& path, off_t start, std::size_t max_bytes);

}  // namespace fleetrun::launcher
