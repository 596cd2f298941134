// What the running jobs of this user hold of this host: devices, and cores that processes are pinned to. A
// job that was not told which ones to take passes over them.
//
// Each job has a file POD.PID.claims in the run directory (launcher/host/run_directory), locked for as long
// as fleetrun lives: a file that can be locked belongs to nobody any more, and is removed. While a job
// chooses, others wait (".claims.lock"), so that two that start together do not choose the same.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

class HostClaims {
 public:
  HostClaims() = default;
  /// Looks at what others hold. From now on no other job chooses, until hold(), let_choose() or the end of
  /// this object. Where none of `directories` is safe nobody is known to hold anything.
  explicit HostClaims(const std::vector<std::string>& directories);
  HostClaims(HostClaims&&) noexcept = default;
  HostClaims& operator=(HostClaims&& other) noexcept;
  ~HostClaims() { remove(); }

  /// What is held → the pod that holds it.
  const std::map<std::string, std::string>& held() const noexcept { return held_; }

  /// Holds these for `pod`, too, and lets others choose. Where the file cannot be written, nothing is held.
  void hold(const std::string& pod, const std::set<std::string>& what) noexcept;
  void let_choose() noexcept { choosing_.reset(); }

 private:
  void read();
  void remove() noexcept;

  UniqueFd directory_, choosing_, own_;
  std::string name_;  // of the own file
  std::map<std::string, std::string> held_;
};

}  // namespace fleetrun::launcher
