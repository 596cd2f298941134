#include "launcher/host/secret_file.h"

#include <unistd.h>

#include "launcher/host/run_directory.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {

SecretFile::SecretFile(const std::vector<std::string>& directories, const std::string& pod,
                       const Secret& secret) {
  std::vector<std::string> reasons;
  for (const std::string& directory : directories) {
    std::string why;
    if (open_private_directory(directory, true, why)) {
      const std::string path = directory + "/" + pod + ".secret";
      write_secret_file(path, secret);
      path_ = path;
      return;
    }
    reasons.push_back(why);
  }
  throw Error(ErrorKind::host, "there is no place for the secret of the job: " + join(reasons, "; "),
              "set FLEETRUN_RUN_DIR to a directory that only you can open");
}

SecretFile::~SecretFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace fleetrun::launcher
