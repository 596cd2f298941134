#include "launcher/host/secret_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <utility>

#include "launcher/host/run_directory.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {

SecretFile::SecretFile(const std::vector<std::string>& directories, const std::string& pod,
                       const Secret& secret) {
  std::string why;
  const auto directory = first_private_directory(directories, why);
  if (!directory)
    throw Error(ErrorKind::host, "there is no place for the secret of the job: " + why,
                "set FLEETRUN_RUN_DIR to a directory that only you can open");
  remove_abandoned_secrets(directory->opened.value());
  const std::string path = directory->path + "/" + pod + ".secret";
  write_secret_file(path, secret);
  path_ = path;
  held_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  ::flock(held_.value(), LOCK_EX | LOCK_NB);
}

SecretFile& SecretFile::operator=(SecretFile&& other) noexcept {
  remove();
  path_ = std::exchange(other.path_, {});
  held_ = std::move(other.held_);
  return *this;
}

SecretFile::~SecretFile() {
  remove();
}

void SecretFile::remove() noexcept {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace fleetrun::launcher
