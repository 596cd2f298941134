// How the processes of a job get its secret: in a file of this user's alone, for as long as the job runs.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/unique_fd.h"
#include "runtime/secure/secret.h"

namespace fleetrun::launcher {

class SecretFile {
 public:
  SecretFile() = default;
  /// POD.secret in the first of `directories` that is safe (launcher/host/run_directory). Those whose
  /// launchers were killed are removed there.
  /// Throws: Error(host) when there is none.
  SecretFile(const std::vector<std::string>& directories, const std::string& pod, const Secret& secret);
  SecretFile& operator=(SecretFile&& other) noexcept;
  ~SecretFile();

  const std::string& path() const noexcept { return path_; }

 private:
  void remove() noexcept;

  std::string path_;
  UniqueFd held_;  // locked while this launcher lives
};

}  // namespace fleetrun::launcher
