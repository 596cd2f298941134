#include "ps/base/directory_sync.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

void sync_directory(const std::string& directory) {
  const std::string path = directory.empty() ? "." : directory;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  check_errno(file.value(), "open", path);
  check_errno(::fsync(file.value()), "fsync", path);
}

}  // namespace fleetrun::ps
