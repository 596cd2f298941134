// How the processes of a job get its secret: in a file of this user's alone, for as long as the job runs.
#pragma once

#include <string>
#include <vector>

#include "runtime/secure/secret.h"

namespace fleetrun::launcher {

class SecretFile {
 public:
  SecretFile() = default;
  /// POD.secret in the first of `directories` that is safe (launcher/host/run_directory).
  /// Throws: Error(host) when there is none.
  SecretFile(const std::vector<std::string>& directories, const std::string& pod, const Secret& secret);
  SecretFile(SecretFile&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  SecretFile& operator=(SecretFile&& other) noexcept {
    path_.swap(other.path_);
    return *this;
  }
  ~SecretFile();

  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace fleetrun::launcher
