#include "launcher/host/secret_file.h"

#include <unistd.h>

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
  const std::string path = directory->path + "/" + pod + ".secret";
  write_secret_file(path, secret);
  path_ = path;
}

SecretFile::~SecretFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace fleetrun::launcher
