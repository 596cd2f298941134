#include "runtime/base/random_bytes.h"

#include <errno.h>
#include <sys/random.h>

#include "runtime/base/error.h"

namespace fleetrun {

void fill_with_random_bytes(std::span<unsigned char> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    check_errno(static_cast<int>(count), "getrandom", "drawing random bytes");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

std::string random_bytes(std::size_t count) {
  std::string result(count, '\0');
  fill_with_random_bytes({reinterpret_cast<unsigned char*>(result.data()), result.size()});
  return result;
}

}  // namespace fleetrun
